package pick

import (
	"math"
	"reflect"
	"testing"
)

// Unweighted terms times their weights are the card's own, and times other weights
// those of the card that a policy with these would give. The card stays as it is.
func TestUnweighted(t *testing.T) {
	f := newFleet(t, 4)
	prompt := tokens(1, 4096)
	f.store(f.pod(0).Members[0], 0, prompt, 0, 200)
	f.store(f.pod(1).Members[0], 0, prompt, 0, 100)
	f.fill(f.pod(0), 3, 0.2)
	f.fill(f.pod(2), 1, 0.1)
	for _, name := range []string{"pool", "fixed"} {
		pol, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		other, err := pol.With(Weight{"alpha", 2}, Weight{"beta", 0.5}, Weight{"breaker.weight", 7}, Weight{"pool", 3}, Weight{"delay", 0.5})
		if err != nil {
			t.Fatal(err)
		}
		q := f.query(prompt, start)
		v := f.View()
		var c, x Card
		if Decide(&v, q, pol, &c) != Picked || Decide(&v, q, other, &x) != Picked {
			t.Fatal("nothing was picked")
		}
		c.Rows[3].Candidate = false
		before := c.Clone()
		unit := c.Unweighted(nil)
		if len(unit) != len(c.Rows)*len(terms) {
			t.Fatalf("%d numbers", len(unit))
		}
		for i := range c.Rows {
			if c.Rows[i].Total != before.Rows[i].Total || c.Rows[i].Terms != before.Rows[i].Terms {
				t.Errorf("row %d has changed", i)
			}
			for k := range terms {
				u := float64(unit[i*len(terms)+k])
				if i == 3 {
					if !math.IsNaN(u) {
						t.Errorf("%s of a pod that is no candidate: %v", terms[k].name, u)
					}
					continue
				}
				for _, w := range []struct {
					pol  *Policy
					card *Card
				}{{pol, &c}, {other, &x}} {
					if got, want := u*w.pol.TermWeights()[k], w.card.Rows[i].Terms[k]; !near(got, want, 1e-5) {
						t.Errorf("%s, row %d: %s is %v per unit, which makes %v; the card has %v", name, i, terms[k].name, u, got, want)
					}
				}
			}
		}
	}
	none := DefaultPolicy()
	for _, key := range termWeights {
		set(reflect.ValueOf(none).Elem(), Weight{key, 0})
	}
	for i, w := range none.unit().TermWeights() {
		if w != 1 {
			t.Errorf("%s has a weight of %v at a unit", terms[i].name, w)
		}
	}
}

// Every weight of a term is 1 in unit: what a new term brings is not forgotten.
func TestUnit(t *testing.T) {
	for i, w := range (&Policy{}).unit().TermWeights() {
		if w != 1 {
			t.Errorf("%s: %v", terms[i].name, w)
		}
	}
}
