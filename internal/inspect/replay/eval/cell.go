package eval

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/eppctl/eppctl/internal/inspect/replay/fleet"
	"github.com/eppctl/eppctl/internal/inspect/replay/route"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
)

// Cell is one run: everything that decides its result.
type Cell struct {
	Scenario string
	Load     float64
	Seed     uint64
	Policy   string
	Variant  string // "" = as the scenario is; else a name in variants
	Short    bool   // the scenario's first requests only
}

// Results are runs by cell.
type Results map[Cell]*fleet.Result

// runner runs cells, several at a time, and reads each workload once.
type runner struct {
	traces string
	mu     sync.Mutex
	loads  map[string]func() (*workload.Workload, error)
}

// Run runs cells on all processors. progress is told how many are done.
func Run(ctx context.Context, traces string, cells []Cell, progress func(done, total int)) (Results, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r := &runner{traces: traces, loads: map[string]func() (*workload.Workload, error){}}
	out := Results{}
	todo := make(chan Cell)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for c := range todo {
				x, err := r.run(ctx, c)
				if err != nil {
					stop(fmt.Errorf("%s at load %g under %s: %w", c.Scenario, c.Load, c.Policy, err))
					continue
				}
				r.mu.Lock()
				out[c] = x
				done := len(out)
				r.mu.Unlock()
				if progress != nil {
					progress(done, len(cells))
				}
			}
		})
	}
	for _, c := range cells {
		if ctx.Err() == nil {
			todo <- c
		}
	}
	close(todo)
	workers.Wait()
	return out, context.Cause(ctx)
}

func (r *runner) run(ctx context.Context, c Cell) (*fleet.Result, error) {
	s, err := scenario(c.Scenario)
	if err != nil {
		return nil, err
	}
	w, err := r.workload(s, c.Seed)
	if err != nil {
		return nil, err
	}
	if c.Short {
		w = w.Head(s.Short)
	}
	config := s.config(c.Load, c.Seed)
	if err := vary(c.Variant, &config); err != nil {
		return nil, err
	}
	p, err := route.ByName(c.Policy)
	if err != nil {
		return nil, err
	}
	x, err := fleet.Run(ctx, w, p, config, nil)
	if err == nil && !keepOutcomes(c.Variant) {
		x.Outcomes = nil // twelve thousand of each run
	}
	return x, err
}

func (r *runner) workload(s *Scenario, seed uint64) (*workload.Workload, error) {
	key := fmt.Sprint(s.Name, seed)
	r.mu.Lock()
	load := r.loads[key]
	if load == nil {
		load = sync.OnceValues(func() (*workload.Workload, error) { return s.make(r.traces, seed) })
		r.loads[key] = load
	}
	r.mu.Unlock()
	return load()
}

func scenario(name string) (*Scenario, error) {
	for _, list := range [][]Scenario{Scenarios, Others} {
		for i := range list {
			if list[i].Name == name {
				return &list[i], nil
			}
		}
	}
	return nil, fmt.Errorf("no scenario %q", name)
}
