package replay

import (
	"math"
	"testing"

	"github.com/eppctl/eppctl/internal/inspect/replay/route"
)

// FuzzFlags: whatever stands behind a flag, it is read or refused, and what is read is
// what the fleet checks once more: no number of it is none.
func FuzzFlags(f *testing.F) {
	for _, text := range []string{
		"zipf=1.5", "pod-3=3x", "3=2.5", "pod-0=3x@1m30s", "pod-2@5m+30s", "alpha=4", "breaker.depth=16", "=", "@+", "pod-=x@", "a=b=c", "pod-1=NaNx", "x=Inf",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if k, v, err := ParseParameter(text); err == nil && (k == "" || math.IsNaN(v) || math.IsInf(v, 0)) {
			t.Errorf("--param %q: %q = %v", text, k, v)
		}
		if s, err := ParseSlow(text); err == nil && (math.IsNaN(s.Factor) || math.IsInf(s.Factor, 0) || math.IsNaN(s.From)) {
			t.Errorf("--slow %q: %+v", text, s)
		}
		if r, err := ParseRestart(text); err == nil && (math.IsNaN(r.At) || math.IsNaN(r.Down)) {
			t.Errorf("--restart %q: %+v", text, r)
		}
		if s, err := route.ParseSetting(text); err == nil && (s.Key == "" || s.Value == "") {
			t.Errorf("--set %q: %+v", text, s)
		}
	})
}
