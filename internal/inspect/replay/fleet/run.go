package fleet

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/eppctl/eppctl/internal/inspect/replay/engine"
	"github.com/eppctl/eppctl/internal/inspect/replay/route"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
)

// run is one run under way.
type run struct {
	queue
	config  *Config
	load    *workload.Workload
	routers []route.Router
	pods    []*server
	flights []flight
	ended   int
	rnd     *rand.Rand // which replica a request reaches
	report  func(done, total int)
}

// flight is what became of one request.
type flight struct {
	route.Request
	Outcome
	sequence *engine.Sequence
	replica  int
}

// Run plays a workload under a policy. progress, if any, is told how many requests
// have ended. It fails when ctx ends first.
func Run(ctx context.Context, w *workload.Workload, policy route.Policy, c Config, progress func(done, total int)) (*Result, error) {
	if err := c.check(w); err != nil {
		return nil, err
	}
	r := &run{config: &c, load: w, report: progress, rnd: rand.New(rand.NewPCG(c.Seed, 0x7265706c))}
	if err := r.build(policy); err != nil {
		return nil, err
	}
	r.begin()
	for steps := 0; r.ended < len(r.flights); steps++ {
		if steps%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !r.next() {
			return nil, fmt.Errorf("policy %s: %d of %d requests never ended", policy.Name, len(r.flights)-r.ended, len(r.flights))
		}
	}
	return r.result(policy.Name), nil
}

// build makes engines and routers.
func (r *run) build(policy route.Policy) error {
	c := r.config
	var engines []*engine.Engine
	for i := range c.Pods {
		s := newServer(r, i)
		r.pods = append(r.pods, s)
		engines = append(engines, s.engine)
	}
	for i := range c.Replicas {
		x, err := policy.Make(&route.Fleet{
			Pods: c.Pods, Replica: i, Profile: c.Profile, BlockSize: r.load.BlockSize, Distinct: r.load.Distinct,
			Seed: c.Seed, Engines: engines, Settings: c.Settings,
		})
		if err != nil {
			return &ConfigError{err.Error()}
		}
		r.routers = append(r.routers, x)
	}
	return nil
}

// begin enters all that is known beforehand.
func (r *run) begin() {
	c := r.config
	r.flights = make([]flight, len(r.load.Requests))
	for i, at := range r.load.Spread(c.Seed) {
		f := &r.flights[i]
		f.Request = route.Request{Request: &r.load.Requests[i], Index: i, ID: fmt.Sprintf("%d-%06d", c.Seed, i)}
		f.Arrival = float64(nanos(at/c.Speed)) / 1e9
		r.at(nanos(f.Arrival), func() { r.arrive(f) })
	}
	for i, s := range r.pods {
		for k := range r.routers { // replicas scrape on their own, out of step
			phase := (float64(i) + float64(k)/float64(len(r.routers))) / float64(len(r.pods))
			r.at(nanos(c.Scrape*phase), func() { s.scrape(k) })
		}
	}
	for _, x := range c.Slow {
		r.at(nanos(x.From), func() { r.pods[x.Pod].engine.SetSlow(x.Factor) })
	}
	for _, x := range c.Restarts {
		r.at(nanos(x.At), func() { r.pods[x.Pod].crash(nanos(x.Down)) })
	}
	r.after(second, r.second)
}

const second = int64(1e9)

func nanos(s float64) int64 { return int64(math.Round(s * 1e9)) }

func (r *run) second() {
	for _, x := range r.routers {
		x.Second(r.now)
	}
	r.after(second, r.second)
}

// arrive brings a request to one of the replicas.
func (r *run) arrive(f *flight) {
	if len(r.routers) > 1 {
		f.replica = r.rnd.IntN(len(r.routers))
	}
	r.send(f)
}

// retryAfter is how long a request that no pod can take waits, as a client would.
const retryAfter = second

func (r *run) send(f *flight) {
	to := r.routers[f.replica].Pick(&f.Request, r.now)
	if to < 0 {
		r.after(retryAfter, func() { r.send(f) })
		return
	}
	f.Pod, f.Placed, f.Sends = to, float64(r.now)/1e9, f.Sends+1
	f.sequence = &engine.Sequence{ID: f.Index, Prompt: f.Prompt, Output: f.Output, Blocks: f.Blocks, Adapter: f.Adapter}
	r.pods[to].take(f.sequence)
}

// first is the first byte of a request's answer.
func (r *run) first(s *engine.Sequence) {
	f := &r.flights[s.ID]
	if f.First == 0 { // a client that was cut off and asked again has had its first token
		f.First, f.Cached = float64(r.now)/1e9, s.Cached
	}
	r.routers[f.replica].First(&f.Request, r.now)
}

// done is the end of a request.
func (r *run) done(s *engine.Sequence) {
	f := &r.flights[s.ID]
	f.Done = float64(r.now) / 1e9
	r.routers[f.replica].End(&f.Request, false, r.now)
	if r.ended++; r.report != nil {
		r.report(r.ended, len(r.flights))
	}
}
