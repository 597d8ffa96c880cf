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

	change func(*fleet.Config) // what else is other than usual, nil = nothing
}

// Scenarios are the six, in the order of tables. Load 1 is some 85 % of what the best
// policy can do; b2b ends past that.
var Scenarios = []Scenario{
	{Name: "conversation", About: "Mooncake conversation trace", Pods: 16, Pool: 1, Speed: 3, Short: 3000, make: trace("mooncake_conversation_trace.jsonl.gz")},
	{Name: "tool", About: "tool prompts of uneven popularity", Pods: 16, Pool: 1, Speed: 5.5, Short: 3000, make: generated("tool", nil, 14_000)},
	{Name: "hot", About: "the same with one hot prompt", Pods: 16, Pool: 1, Speed: 5, Short: 3000, make: generated("hot", nil, 14_000)},
	{Name: "b2b", About: "shared prefixes past the KV pools, rising rate", Pods: 8, Pool: 0.53, Speed: 1, make: generated("b2b", nil, 0)},
	{Name: "code", About: "Azure code trace: nothing is shared", Pods: 16, Pool: 1, Speed: 35, Short: 3000, make: trace("azure_llm_2023_code.csv.gz")},
	{Name: "agent", About: "coding sessions behind long system prompts", Pods: 16, Pool: 1, Speed: 1, Short: 3000, make: generated("agent", nil, 0)},
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

func generated(name string, set workload.Parameters, head int) func(string, uint64) (*workload.Workload, error) {
	return func(_ string, seed uint64) (*workload.Workload, error) {
		w, err := workload.Generate(name, seed, set)
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
	if s.change != nil {
		s.change(&c)
	}
	c.Profile.PoolTokens = int(s.Pool * float64(c.Profile.PoolTokens))
	return c
}
