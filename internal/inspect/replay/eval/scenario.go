package eval

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/eppctl/eppctl/internal/inspect/replay/fleet"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
)

// Scenario is a workload on a fleet, at the load that is called 1.
type Scenario struct {
	Name  string
	About string
	Pods  int
	Pool  float64 // share of the profile's KV pool that a pod has
	Speed float64 // at load 1
	Short int     // requests of the short form that tests run
	make  func(traces string, seed uint64) (*workload.Workload, error)
}

// Scenarios are the six, in the order of tables. Load 1 is some 85 % of what the best
// policy can do; b2b ends past that.
var Scenarios = []Scenario{
	{"conversation", "Mooncake conversation trace, 16 pods", 16, 1, 3, 3000, trace("mooncake_conversation_trace.jsonl.gz")},
	{"tool", "tool prompts of uneven popularity, 16 pods", 16, 1, 5.5, 3000, generated("tool", 14_000)},
	{"hot", "the same with one hot prompt", 16, 1, 5, 3000, generated("hot", 14_000)},
	{"b2b", "shared prefixes past the KV pools, rising rate, 8 pods", 8, 0.53, 1, 0, generated("b2b", 0)},
	{"code", "Azure code trace: nothing is shared, 16 pods", 16, 1, 35, 3000, trace("azure_llm_2023_code.csv.gz")},
	{"agent", "coding sessions behind long system prompts, 16 pods", 16, 1, 1, 3000, generated("agent", 0)},
}

func trace(file string) func(string, uint64) (*workload.Workload, error) {
	return func(dir string, _ uint64) (*workload.Workload, error) {
		f, err := os.Open(filepath.Join(dir, file))
		if err != nil {
			return nil, fmt.Errorf("trace: %w", err)
		}
		defer f.Close()
		return workload.Read(file, f, 0)
	}
}

func generated(name string, head int) func(string, uint64) (*workload.Workload, error) {
	return func(_ string, seed uint64) (*workload.Workload, error) {
		w, err := workload.Generate(name, seed, nil)
		if err != nil {
			return nil, err
		}
		return w.Head(head), nil
	}
}

// config is the scenario's fleet at a load.
func (s *Scenario) config(load float64, seed uint64) fleet.Config {
	c := fleet.Default()
	c.Pods, c.Speed, c.Seed = s.Pods, s.Speed*load, seed
	c.Profile.PoolTokens = int(s.Pool * float64(c.Profile.PoolTokens))
	return c
}
