package eval

import (
	"fmt"

	"github.com/eppctl/eppctl/internal/inspect/replay/fleet"
	"github.com/eppctl/eppctl/internal/inspect/replay/route"
)

// slowPod is the pod of the variant of that name, and when it begins.
const (
	slowPod    = 5
	slowFactor = 3
	slowFrom   = 300 // s
)

// variants change one thing of a scenario's fleet.
var variants = []struct {
	name   string
	change func(*fleet.Config)
}{
	{"", func(*fleet.Config) {}},
	{"replicas-2", func(c *fleet.Config) { c.Replicas = 2 }},
	{"replicas-4", func(c *fleet.Config) { c.Replicas = 4 }},
	{"scrape-50ms", func(c *fleet.Config) { c.Scrape = 0.05 }},
	{"scrape-1s", func(c *fleet.Config) { c.Scrape = 1 }},
	{"scrape-5s", func(c *fleet.Config) { c.Scrape = 5 }},
	{"events-1s", func(c *fleet.Config) { c.EventDelay = 1 }},
	{"events-5s", func(c *fleet.Config) { c.EventDelay = 5 }},
	{"loss-1%", func(c *fleet.Config) { c.Loss = 0.01 }},
	{"loss-1%-for-good", func(c *fleet.Config) { c.Loss, c.ReplayDelay = 0.01, 0 }},
	{"rate-half", func(c *fleet.Config) { setRate(c, 0.5) }},
	{"rate-double", func(c *fleet.Config) { setRate(c, 2) }},
	{"rate-default", func(c *fleet.Config) {
		c.Settings = route.Settings{{Key: "prefill_tokens_per_second", Value: "16000"}, {Key: "prefill_quadratic", Value: "0"}}
	}},
	{"slow", func(c *fleet.Config) {
		c.Slow = []fleet.Slow{{Pod: slowPod, Factor: slowFactor, From: slowFrom}}
	}},
	{"restarts", func(c *fleet.Config) {
		for i := range c.Pods { // one after the other, as a rollout does
			c.Restarts = append(c.Restarts, fleet.Restart{Pod: i, At: 300 + 40*float64(i), Down: 20})
		}
	}},
}

// setRate tells the product a prefill rate that is wrong by a factor.
func setRate(c *fleet.Config, factor float64) {
	c.Settings = route.Settings{
		{Key: "prefill_tokens_per_second", Value: fmt.Sprint(factor / c.Profile.PerToken)},
		{Key: "prefill_quadratic", Value: fmt.Sprint(c.Profile.Quadratic / factor)},
	}
}

func vary(name string, c *fleet.Config) error {
	for _, v := range variants {
		if v.name == name {
			v.change(c)
			return nil
		}
	}
	return fmt.Errorf("no variant %q", name)
}

// keepOutcomes names the variants of which single requests are looked at.
func keepOutcomes(variant string) bool { return variant == "slow" }
