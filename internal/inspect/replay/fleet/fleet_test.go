package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/inspect/replay/route"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
	"github.com/eppctl/eppctl/internal/testdata"
)

func conversation(t *testing.T, n int) *workload.Workload {
	t.Helper()
	name := filepath.Join(testdata.Dirs(t, "traces")[0], "mooncake_conversation_trace.jsonl.gz")
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := workload.Read("conversation", f, n)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func generate(t *testing.T, name string, set workload.Parameters) *workload.Workload {
	t.Helper()
	w, err := workload.Generate(name, 1, set)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func play(t *testing.T, w *workload.Workload, policy string, c Config) *Result {
	t.Helper()
	p, err := route.ByName(policy)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), w, p, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every policy plays equal configurations to equal results, with all that can happen
// happening, and every request has its first token and its end in order.
func TestDeterministic(t *testing.T) {
	w := conversation(t, 200).WithAdapters(6, 1, 1)
	c := Default()
	c.Pods, c.Speed, c.Replicas, c.Loss = 4, 1, 3, 0.02
	c.Profile.HostTokens, c.Profile.AdapterSlots = 400_000, 4
	c.Slow = []Slow{{Pod: 1, Factor: 2, From: 15}}
	c.Restarts = []Restart{{Pod: 2, At: 20, Down: 20}, {Pod: 3, At: 45, Down: 5}}
	for _, p := range route.Names() {
		a, b := play(t, w, p, c), play(t, w, p, c)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: two runs differ", p)
		}
		other := c
		other.Seed = 2
		if d := play(t, w, p, other); reflect.DeepEqual(a.Outcomes, d.Outcomes) {
			t.Errorf("%s: the seed changes nothing", p)
		}
		if a.Resent == 0 {
			t.Errorf("%s: the restarts hit nobody", p)
		}
		for i, o := range a.Outcomes {
			if !(o.Arrival <= o.Placed && o.Arrival < o.First && o.First <= o.Done) {
				t.Fatalf("%s: request %d: %+v", p, i, o)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	w := generate(t, "shared_prefix", workload.Parameters{"num_groups": 1, "num_prompts_per_group": 2})
	for _, x := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Pods = 0 }, "0 pods: want 1 to"},
		{func(c *Config) { c.Replicas = 99 }, "99 replicas"},
		{func(c *Config) { c.Speed = 0 }, "speed 0"},
		{func(c *Config) { c.Speed = 1e-308 }, "speed 1e-308: the last of 2 requests"},
		{func(c *Config) { c.Scrape = 0 }, "scrape interval 0"},
		{func(c *Config) { c.Noise = 1 }, "noise 1"},
		{func(c *Config) { c.Slow = []Slow{{Pod: 16, Factor: 2}} }, "slow pod 16"},
		{func(c *Config) { c.Slow = []Slow{{Factor: 2, From: 9e9}} }, "a time within ten years"},
		{func(c *Config) { c.Restarts = []Restart{{Pod: 0, At: 1}} }, "restart of pod 0"},
		{func(c *Config) { c.Restarts = []Restart{{Pod: 0, At: 9e9, Down: 1}} }, "within ten years"},
		{func(c *Config) { c.Restarts = []Restart{{Pod: 0, At: 1, Down: 9e9}} }, "within ten years"},
		{func(c *Config) { c.Profile.PoolTokens = 4096 }, "request 0: 4608 prompt and 256 output tokens need 12 blocks"},
		{func(c *Config) { c.Settings = route.Settings{{Key: "alhpa", Value: "1"}} }, "weights: alhpa=1"},
		{func(c *Config) { c.Settings = route.Settings{{Key: "alpha", Value: "-1"}} }, "alpha"},
	} {
		c := Default()
		x.change(&c)
		p, _ := route.ByName("pool")
		if _, err := Run(context.Background(), w, p, c, nil); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, want %q", err, x.want)
		}
	}
}

// A run ends when its context does.
func TestInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	p, _ := route.ByName("round-robin")
	seen := 0
	_, err := Run(ctx, conversation(t, 3000), p, Default(), func(done, total int) {
		if seen = done; done == 10 {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) || seen > 2500 {
		t.Errorf("%v after %d requests", err, seen)
	}
}

// Settings reach the decision: with those of the preset "fixed" the preset "pool"
// plays the same game, and without them another.
func TestSettings(t *testing.T) {
	w := conversation(t, 600)
	c := Default()
	c.Pods = 4
	plain, fixed := play(t, w, "pool", c), play(t, w, "fixed", c)
	c.Settings = route.Settings{
		{Key: "alpha", Value: "4"}, {Key: "delay", Value: "0"}, {Key: "pool", Value: "0"}, {Key: "beta", Value: "0.02"},
		{Key: "upsilon", Value: "0.05"}, {Key: "crowding", Value: "0"}, {Key: "breaker.depth", Value: "32"},
	}
	set := play(t, w, "pool", c)
	if set.Mean != fixed.Mean || set.Hit != fixed.Hit || set.Mean == plain.Mean {
		t.Errorf("mean %v s and hit %v with the settings of fixed; fixed %v and %v, pool %v", set.Mean, set.Hit, fixed.Mean, fixed.Hit, plain.Mean)
	}
}
