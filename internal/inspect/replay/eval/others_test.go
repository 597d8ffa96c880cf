package eval

import (
	"context"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/inspect/replay/fleet"
	"github.com/eppctl/eppctl/internal/inspect/replay/route"
)

// Each of the other workloads can be played: its parameters exist and its prompts fit
// its pods.
func TestOthers(t *testing.T) {
	x, err := route.ByName(own)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i := range Others {
		s := &Others[i]
		t.Run(s.Name, func(t *testing.T) {
			if found, err := scenario(s.Name); err != nil || found != s || seen[s.Name] {
				t.Errorf("its name stands for %v, %v", found, err)
			}
			seen[s.Name] = true
			w, err := s.make("", 1)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(w.Requests); n < 1000 || n > 10_000 {
				t.Errorf("%d requests: want enough for a mean, and few enough for minutes", n)
			}
			if _, err := fleet.Run(context.Background(), w.Head(50), x, s.config(1, 1), nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// The table names the best of the others, marks where the product is behind, and
// counts.
func TestOtherMarkdown(t *testing.T) {
	r := Results{}
	for _, c := range OtherMatrix(2) {
		mean := 1.0
		switch {
		case c.Policy == "omniscient", c.Policy == "omniscient-4":
			mean = 0.1
		case c.Scenario == Others[0].Name && c.Policy == "sglang":
			mean = 0.5 * float64(c.Seed)
		case c.Scenario == Others[1].Name && c.Policy == own:
			mean = 0.5
		}
		r[c] = &fleet.Result{Mean: mean, P99: 9 * mean}
	}
	var b strings.Builder
	if err := r.OtherMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 1.00 | 9.00 | 1.00 | 0.100 | sglang | 0.750 | 6.75 | **1.33** | 1.00 to 2.00 |",
		"ahead of all others by more than 3 % in 2, level in",
		" and behind in 2.\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, b.String())
		}
	}
	if n := strings.Count(b.String(), "\n| "); n != len(Others)*len(otherLoads)+1-1 {
		t.Errorf("%d rows", n)
	}
}
