package fleet

import (
	"fmt"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/inspect/replay/engine"
	"github.com/eppctl/eppctl/internal/inspect/replay/route"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
)

// Config is one run, but for workload and policy.
type Config struct {
	Profile  engine.Profile
	Pods     int
	Replicas int     // of the router; they share nothing
	Speed    float64 // divides arrival times
	Seed     uint64

	Scrape     float64 // s between two scrapes of a pod; the pods' phases are spread
	EventDelay float64 // s, mean; each batch takes 0.4 to 1.6 times that
	Noise      float64 // a step's time varies by this share

	Slow     []Slow
	Restarts []Restart
	// Loss is the share of event batches that do not arrive. They are fetched after
	// ReplayDelay when the next one shows the gap; with ReplayDelay 0 they never are.
	Loss        float64
	ReplayDelay float64 // s

	Settings route.Settings
}

// Slow makes a pod's steps longer.
type Slow struct {
	Pod    int
	Factor float64
	From   float64 // s
}

// Restart empties a pod and takes it away for a while. What ran there is sent
// again.
type Restart struct {
	Pod  int
	At   float64 // s
	Down float64 // s
}

// Default is the setting of the published tables, but for the fleet's size.
func Default() Config {
	p, err := engine.ProfileByName(engine.Profiles()[0])
	if err != nil {
		panic(err) // the list is not empty
	}
	return Config{
		Profile: p, Pods: 16, Replicas: 1, Speed: 1, Seed: 1,
		Scrape: 0.25, EventDelay: 0.003, Noise: 0.1, ReplayDelay: 0.05,
	}
}

// MaxReplicas bounds the routers of a run.
const MaxReplicas = 64

// ConfigError is a setting that cannot be played.
type ConfigError struct{ Why string }

func (e *ConfigError) Error() string { return e.Why }

func refuse(format string, args ...any) error { return &ConfigError{fmt.Sprintf(format, args...)} }

// check refuses what cannot be played.
func (c *Config) check(w *workload.Workload) error {
	switch {
	case c.Pods < 1 || c.Pods > pod.MaxMembers:
		return refuse("%d pods: want 1 to %d", c.Pods, pod.MaxMembers)
	case c.Replicas < 1 || c.Replicas > MaxReplicas:
		return refuse("%d replicas: want 1 to %d", c.Replicas, MaxReplicas)
	case !(c.Speed > 0 && c.Speed <= 1e6):
		return refuse("speed %v: want a number above 0, up to 1000000", c.Speed)
	case !(c.Scrape >= 0.001 && c.Scrape <= 3600):
		return refuse("scrape interval %v s: want 1 ms to an hour", c.Scrape)
	case !(c.EventDelay >= 0 && c.EventDelay <= 3600), !(c.ReplayDelay >= 0 && c.ReplayDelay <= 3600):
		return refuse("event delay %v s, replay delay %v s: want 0 to an hour", c.EventDelay, c.ReplayDelay)
	case !(c.Noise >= 0 && c.Noise < 1), !(c.Loss >= 0 && c.Loss < 1):
		return refuse("noise %v, event loss %v: want a share from 0 to below 1", c.Noise, c.Loss)
	}
	for _, s := range c.Slow {
		if s.Pod < 0 || s.Pod >= c.Pods || !(s.Factor >= 0.01 && s.Factor <= 100) || !(s.From >= 0 && s.From <= workload.MaxSeconds) {
			return refuse("slow pod %d by %v from %v s: want a pod from 0 to %d, a factor from 0.01 to 100 and a time within ten years", s.Pod, s.Factor, s.From, c.Pods-1)
		}
	}
	for _, r := range c.Restarts {
		if r.Pod < 0 || r.Pod >= c.Pods || !(r.At >= 0 && r.At <= workload.MaxSeconds) || !(r.Down > 0 && r.Down <= workload.MaxSeconds) {
			return refuse("restart of pod %d at %v s for %v s: want a pod from 0 to %d and times above 0, within ten years", r.Pod, r.At, r.Down, c.Pods-1)
		}
	}
	if n := len(w.Requests); n > 0 && w.Requests[n-1].At/c.Speed > workload.MaxSeconds {
		return refuse("speed %v: the last of %d requests would come after more than ten years", c.Speed, n)
	}
	return c.fits(w)
}

// fits refuses a request that no pod could ever admit: it would wait for ever, and
// everything behind it.
func (c *Config) fits(w *workload.Workload) error {
	for i := range w.Requests {
		if r := &w.Requests[i]; !Fits(&c.Profile, w.BlockSize, r.Prompt, r.Output) {
			return refuse("request %d: %d prompt and %d output tokens need %d blocks of %d tokens, a pod of profile %s has %d",
				i, r.Prompt, r.Output, need(w.BlockSize, r.Prompt, r.Output), w.BlockSize, c.Profile.Name, c.Profile.Blocks(w.BlockSize))
		}
	}
	return nil
}

// Fits reports whether a pod could ever admit a request of these lengths.
func Fits(p *engine.Profile, blockSize, prompt, output int) bool {
	return need(blockSize, prompt, output) <= p.Blocks(blockSize)
}

func need(blockSize, prompt, output int) int { return (prompt+output)/blockSize + engine.Headroom + 1 }
