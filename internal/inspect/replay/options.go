package replay

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect/replay/fleet"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
)

// Options are what the command line says.
type Options struct {
	Trace      string // file, "-" = stdin; or
	Workload   string // a generator
	Parameters workload.Parameters
	Decisions  []string // files that serve recorded, patterns of them, "-" = stdin; or
	Model      string   // of the decisions, "" = the one with the most
	Requests   int      // the first so many; 0 = all
	Adapters   int      // LoRA adapters that requests are spread over, unevenly; 0 = none

	Policies []string
	Weights  []pick.Weight // of the policy what-if, over the recorded ones or the preset pool
	Speeds   []float64
	Fleet    fleet.Config
	// AsRecorded are the settings of Fleet that the decisions are to tell.
	AsRecorded AsRecorded

	Format string // table, json
	HTML   string // file for the report, "" = none

	recorded *pick.Policy // that the decisions were made by; nil = not read
}

// AsRecorded says what of a fleet is taken from a recording of decisions.
type AsRecorded struct{ Pods, Scrape, Pool, Pace bool }

// Formats lists what -o takes.
func Formats() []string { return []string{"table", "json"} }

// maxRuns bounds policies times speeds.
const maxRuns = 1000

// adapterZipf is how uneven adapters are used.
const adapterZipf = 1

// ParseParameter reads key=number.
func ParseParameter(text string) (key string, value float64, err error) {
	key, number, ok := strings.Cut(text, "=")
	value, err = finite(number)
	if !ok || key == "" || err != nil {
		return "", 0, fmt.Errorf("%q: want NAME=NUMBER, such as num_groups=64", text)
	}
	return key, value, nil
}

// ParseSlow reads POD=FACTORx, with @TIME behind it for one that is well until then:
// pod-3=3x, pod-3=2.5x@5m.
func ParseSlow(text string) (s fleet.Slow, err error) {
	bad := fmt.Errorf("%q: want POD=FACTORx or POD=FACTORx@TIME, such as pod-3=3x@5m", text)
	name, rest, ok := strings.Cut(text, "=")
	if !ok {
		return s, bad
	}
	factor, from, later := strings.Cut(rest, "@")
	if s.Pod, err = podNumber(name); err != nil {
		return s, bad
	}
	if s.Factor, err = finite(strings.TrimSuffix(factor, "x")); err != nil {
		return s, bad
	}
	if later {
		if s.From, err = duration(from); err != nil {
			return s, bad
		}
	}
	return s, nil
}

// ParseRestart reads POD@TIME+DURATION: when it dies, and for how long it is away.
func ParseRestart(text string) (r fleet.Restart, err error) {
	bad := fmt.Errorf("%q: want POD@TIME+DURATION, such as pod-3@5m+30s", text)
	name, rest, ok := strings.Cut(text, "@")
	at, away, plus := strings.Cut(rest, "+")
	if !ok || !plus {
		return r, bad
	}
	if r.Pod, err = podNumber(name); err != nil {
		return r, bad
	}
	if r.At, err = duration(at); err != nil {
		return r, bad
	}
	if r.Down, err = duration(away); err != nil {
		return r, bad
	}
	return r, nil
}

// finite reads a number that is one.
func finite(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
		err = strconv.ErrRange
	}
	return v, err
}

// podNumber is the number of pod-3, or of 3.
func podNumber(name string) (int, error) { return strconv.Atoi(strings.TrimPrefix(name, "pod-")) }

func duration(text string) (float64, error) {
	d, err := time.ParseDuration(text)
	return d.Seconds(), err
}

// check refuses what no run needs to begin for.
func (o *Options) check() error {
	for _, name := range o.Policies {
		if _, err := o.policy(name); err != nil {
			return err
		}
	}
	if n := len(o.Policies) * len(o.Speeds); n < 1 || n > maxRuns {
		return fmt.Errorf("%d policies at %d speeds: want 1 to %d runs", len(o.Policies), len(o.Speeds), maxRuns)
	}
	if o.Requests < 0 || o.Adapters < 0 || o.Adapters > 1000 {
		return fmt.Errorf("%d requests, %d adapters: want 0 or more, and at most 1000 adapters", o.Requests, o.Adapters)
	}
	return nil
}
