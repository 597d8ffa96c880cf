package fleet

import (
	"math/rand/v2"

	"github.com/eppctl/eppctl/internal/inspect/replay/engine"
	"github.com/eppctl/eppctl/internal/inspect/replay/route"
)

// server is one pod: an engine, and how its words reach the routers.
type server struct {
	run    *run
	number int
	engine *engine.Engine
	rnd    *rand.Rand
	busy   bool
	down   bool
	life   int // grows with each crash: what an earlier life had begun is void
	lines  []line
}

// line is the event stream from one pod to one replica.
type line struct {
	last    int64 // when the last batch arrives: batches do not overtake
	missing [][]engine.Change
}

func newServer(r *run, i int) *server {
	c := r.config
	return &server{
		run: r, number: i, lines: make([]line, c.Replicas), rnd: rand.New(rand.NewPCG(c.Seed, uint64(i)+0x65766e74)),
		engine: engine.New(c.Profile, engine.Options{
			BlockSize: r.load.BlockSize, Noise: c.Noise, Rand: rand.New(rand.NewPCG(c.Seed, uint64(i)+0x656e67)),
		}),
	}
}

// take puts a request on the pod.
func (s *server) take(q *engine.Sequence) {
	s.engine.Add(q)
	if !s.busy && !s.down {
		s.step()
	}
}

func (s *server) step() {
	t := s.engine.Step()
	s.busy = t > 0
	s.announce()
	if !s.busy {
		return
	}
	life := s.life
	s.run.after(nanos(t), func() {
		if s.life == life {
			s.finish()
		}
	})
}

func (s *server) finish() {
	first, done := s.engine.Finish()
	for _, q := range first {
		s.run.first(q)
	}
	for _, q := range done {
		s.run.done(q)
	}
	s.announce()
	s.step()
}

// announce sends what the engine has to say on its way to every replica.
func (s *server) announce() {
	batch := s.engine.Changes()
	if len(batch) == 0 {
		return
	}
	for k := range s.lines {
		s.send(k, batch)
	}
}

func (s *server) send(k int, batch []engine.Change) {
	c, l := s.run.config, &s.lines[k]
	if c.Loss > 0 && s.rnd.Float64() < c.Loss {
		l.missing = append(l.missing, batch)
		return
	}
	delay := c.EventDelay * (0.4 + 1.2*s.rnd.Float64())
	l.last = max(l.last, s.run.now+nanos(delay))
	router, life := s.run.routers[k], s.life
	if len(l.missing) > 0 {
		s.recover(k, router)
	}
	s.run.at(l.last, func() {
		if s.life != life {
			return
		}
		router.Announce(s.number, batch, s.run.now)
	})
}

// recover is what follows when a batch shows that others are missing: they are
// fetched, and all that comes meanwhile waits behind them; or they are lost.
func (s *server) recover(k int, router route.Router) {
	c, l, life := s.run.config, &s.lines[k], s.life
	missing := l.missing
	l.missing = nil
	s.run.at(l.last, func() {
		if s.life != life {
			return
		}
		if c.ReplayDelay > 0 {
			router.Stream(s.number, route.Gap, s.run.now)
		} else {
			router.Stream(s.number, route.Partial, s.run.now)
		}
	})
	if c.ReplayDelay == 0 {
		return
	}
	l.last += nanos(c.ReplayDelay)
	s.run.at(l.last, func() {
		if s.life != life {
			return
		}
		for _, b := range missing {
			router.Announce(s.number, b, s.run.now)
		}
		router.Stream(s.number, route.Live, s.run.now)
	})
}

// scrape is one replica reading the pod's metrics.
func (s *server) scrape(k int) {
	if !s.down {
		s.run.routers[k].Scrape(s.number, s.engine.Gauges(), s.run.now)
	}
	s.run.after(nanos(s.run.config.Scrape), func() { s.scrape(k) })
}

// crash empties the pod and takes it away; what ran there is sent again.
func (s *server) crash(away int64) {
	if s.down {
		return
	}
	s.life++
	s.down, s.busy = true, false
	s.lines = make([]line, len(s.lines))
	lost := s.engine.Crash()
	for _, q := range lost {
		f := &s.run.flights[q.ID]
		s.run.routers[f.replica].End(&f.Request, true, s.run.now)
	}
	for _, x := range s.run.routers {
		x.Down(s.number, s.run.now)
	}
	for _, q := range lost {
		s.run.send(&s.run.flights[q.ID])
	}
	s.run.after(away, func() {
		s.down = false
		for _, x := range s.run.routers {
			x.Up(s.number, s.run.now)
		}
	})
}
