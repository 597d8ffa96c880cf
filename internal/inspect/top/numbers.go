package top

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/eppctl/eppctl/internal/inspect/out"
)

// rate is a difference by time, which takes two frames to be known.
type rate struct {
	v  float64
	ok bool
}

// unknown stands for every number that is not known; it is never 0.
const unknown = "?"

func (r rate) String() string {
	if !r.ok {
		return unknown
	}
	return amount(r.v)
}

// amount writes a number of at least 0 in at most five columns.
func amount(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return unknown
	case v == 0:
		return "0"
	case v < 9.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v < 9999.5:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	for _, unit := range []string{"k", "M", "G", "T"} {
		if v /= 1000; v < 999.5 || unit == "T" {
			digits := 1
			if v >= 99.5 {
				digits = 0
			}
			return strconv.FormatFloat(v, 'f', digits, 64) + unit
		}
	}
	return unknown
}

// whole writes a count in at most five columns.
func whole(n int) string {
	if n < 10_000 {
		return strconv.Itoa(n)
	}
	return amount(float64(n))
}

// count is whole of a counter.
func count(n uint64) string { return whole(int(min(n, math.MaxInt64))) }

func number(v *float64) string {
	if v == nil {
		return unknown
	}
	return whole(int(min(*v, math.MaxInt32)))
}

// percent writes a share that may not be known.
func percent(share float64, ok bool) string {
	if !ok {
		return unknown
	}
	return out.Percent(share)
}

// size writes bytes.
func size(n int64) string {
	v := float64(n)
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if v < 1024 || unit == "GiB" {
			if unit == "B" || v >= 99.5 {
				return fmt.Sprintf("%.0f %s", v, unit)
			}
			return fmt.Sprintf("%.1f %s", v, unit)
		}
		v /= 1024
	}
	return unknown
}

// age writes a duration in at most four columns.
func age(d time.Duration) string {
	switch s := max(d, 0).Seconds(); {
	case s < 9.95:
		return strconv.FormatFloat(s, 'f', 1, 64)
	case s < 999.5:
		return strconv.FormatFloat(s, 'f', 0, 64)
	case s < 60*60*3:
		return strconv.FormatFloat(s/60, 'f', 0, 64) + "m"
	case s < 24*60*60*3:
		return strconv.FormatFloat(s/3600, 'f', 0, 64) + "h"
	default:
		return strconv.FormatFloat(min(s/86400, 999), 'f', 0, 64) + "d"
	}
}

// long is an age in words: "0.3 s", "4m".
func long(d time.Duration) string {
	s := age(d)
	if c := s[len(s)-1]; c >= '0' && c <= '9' {
		return s + " s"
	}
	return s
}

func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
