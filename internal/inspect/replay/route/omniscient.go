package route

import "github.com/eppctl/eppctl/internal/inspect/replay/engine"

// omniscient reads the engines themselves, without delay, and takes the pod where
// this request has its first token soonest. With alpha above 1 its own prefill
// counts so many times. Greedy: it is a bound for no workload as a whole.
type omniscient struct {
	alpha   float64
	engines []*engine.Engine
	marks   *engine.Marks
}

func newOmniscient(f *Fleet, alpha float64) *omniscient {
	return &omniscient{alpha: alpha, engines: f.Engines, marks: engine.NewMarks(f.Distinct)}
}

func (x *omniscient) costs(p *peer, r *Request, _ int64) {
	for i, e := range x.engines {
		total, _ := e.Backlog(r.Prompt, r.Blocks, x.marks)
		u := max(r.Prompt-e.Cached(r.Blocks)*p.fleet.BlockSize, 1)
		p.cost[i] = total + (x.alpha-1)*p.fleet.Profile.Prefill(u, r.Prompt-u)
	}
}
