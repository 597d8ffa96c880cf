package serve

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size; the configuration writes it with a unit, as in 32MiB.
type Bytes int64

var units = []struct {
	suffix string
	size   int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}

func (b Bytes) String() string {
	for _, u := range []int{2, 1, 0} {
		if n := units[u].size; int64(b) >= n && int64(b)%n == 0 {
			return strconv.FormatInt(int64(b)/n, 10) + units[u].suffix
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// Set and Type make a Bytes a command-line flag.
func (b *Bytes) Set(s string) (err error) {
	*b, err = parseBytes(s)
	return err
}

// Type names the value in usage texts.
func (b *Bytes) Type() string { return "size" }

// errWrong marks a value of the wrong kind where there is nothing to add.
var errWrong = errors.New("not understood")

// parseBytes reads "32MiB", "1.5GB" or a plain number of bytes.
func parseBytes(s string) (Bytes, error) {
	number, size := s, int64(1)
	for _, u := range units {
		if n, ok := strings.CutSuffix(s, u.suffix); ok {
			number, size = strings.TrimSpace(n), u.size
			break
		}
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, errWrong
	}
	f *= float64(size)
	if f < 0 || f > math.MaxInt64/2 || math.IsNaN(f) {
		return 0, fmt.Errorf("%s is out of range", s)
	}
	return Bytes(f), nil
}

// parseDuration reads a Go duration; a bare 0 is one as well, any other bare
// number is not: its unit would be a guess.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		if _, numErr := strconv.ParseFloat(s, 64); numErr == nil {
			return 0, fmt.Errorf("add a unit: %sms, %ss", s, s)
		}
		return 0, errWrong
	}
	if d < 0 {
		return 0, errors.New("it must not be negative")
	}
	return d, nil
}

// parseFinite reads a number; "inf" and what overflows to it are none.
func parseFinite(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, errWrong
	}
	return f, nil
}
