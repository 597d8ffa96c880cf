package route

import (
	"testing"

	"github.com/eppctl/eppctl/internal/inspect/replay/engine"
)

// FuzzSetting: whatever is set, it makes a valid policy or an error.
func FuzzSetting(f *testing.F) {
	for _, text := range []string{"alpha=4", "breaker.depth=16", "tiers.host.bandwidth=1e9", "a.b.c.d=1", "alpha=}", "alpha={", "x=1}, alpha: 3", "alpha=*a", "alpha=&a 1", "alpha=.nan", "learn.on=yes"} {
		f.Add(text)
	}
	p, err := engine.ProfileByName(engine.Profiles()[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSetting(text)
		if err != nil {
			return
		}
		if pol, err := (Settings{s}).policy("pool", &p); err == nil {
			if err := pol.Validate(); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}
