package explain

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/pick"
)

// seconds writes a signed amount to the millisecond; what rounds to nothing has
// no sign.
func seconds(v float64) string {
	if !visible(v) {
		return "0.000"
	}
	return fmt.Sprintf("%+.3f", v)
}

// ago writes an age in its largest unit and the next one.
func ago(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
}

// age writes milliseconds as seconds, and what is long past without their fractions;
// "never" when there is none.
func age(ms *float64) string {
	if ms == nil {
		return "never"
	}
	switch s := *ms / 1000; {
	case s < 100:
		return fmt.Sprintf("%.2fs", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", int(s)/60, int(s)%60)
	default:
		return fmt.Sprintf("%dh%02dm", int(s)/3600, int(s)/60%60)
	}
}

// decisive says which two terms made the difference between two pods.
func decisive(winner, other *pick.ExplainedPod) string {
	if winner == nil || other == nil {
		return ""
	}
	type diff struct {
		name string
		by   float64
	}
	var diffs []diff
	for _, t := range winner.Terms {
		for _, u := range other.Terms {
			if t.Name == u.Name && visible(t.Seconds-u.Seconds) {
				diffs = append(diffs, diff{t.Name, t.Seconds - u.Seconds})
			}
		}
	}
	if len(diffs) == 0 {
		return "equal to " + other.Name + " in every term"
	}
	slices.SortStableFunc(diffs, func(a, b diff) int {
		switch x, y := math.Abs(a.by), math.Abs(b.by); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	var parts []string
	for _, d := range diffs[:min(len(diffs), 2)] {
		parts = append(parts, fmt.Sprintf("%s %s s", d.name, seconds(d.by)))
	}
	return "against " + other.Name + ": " + strings.Join(parts, ", ")
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
