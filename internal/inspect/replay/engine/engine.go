package engine

import "math/rand/v2"

// Engine is one pod. It belongs to one caller.
type Engine struct {
	profile Profile
	size    int // tokens per block
	noise   float64
	slow    float64
	rnd     *rand.Rand

	pool     *pool
	adapters adapters
	waiting  []*Sequence
	running  []*Sequence

	// Totals since the engine was made.
	Computed    int64   // prefill tokens
	Busy        float64 // seconds
	Preemptions int
}

// Options of an engine besides its profile.
type Options struct {
	BlockSize int     // tokens
	Noise     float64 // a step's time varies by this share, evenly: 0.1 is ± 10 %
	Slow      float64 // factor on every step's time; 0 = 1
	Rand      *rand.Rand
}

// New returns an idle engine with an empty cache.
func New(p Profile, o Options) *Engine {
	if o.Slow == 0 {
		o.Slow = 1
	}
	return &Engine{
		profile: p, size: o.BlockSize, noise: o.Noise, slow: o.Slow, rnd: o.Rand,
		pool:     newPool(p.Blocks(o.BlockSize), p.HostTokens/o.BlockSize),
		adapters: newAdapters(p.AdapterSlots),
	}
}

// Add puts a sequence into the queue.
func (e *Engine) Add(s *Sequence) { e.waiting = append(e.waiting, s) }

// SetSlow changes the factor on every step's time from the next step on.
func (e *Engine) SetSlow(factor float64) { e.slow = factor }

// Step plans the next step and returns its length in seconds; 0 = nothing to do.
// Evictions that it makes are to be announced now.
func (e *Engine) Step() float64 {
	budget := e.profile.StepTokens
	context := e.decode(&budget)
	t, n := 0.0, 0
	for _, s := range e.running {
		if s.decoding {
			n++
			continue
		}
		if s.chunk = min(s.Prompt-s.computed, budget); s.chunk > 0 {
			budget -= s.chunk
			t += e.prefill(s)
			n++
		}
	}
	admitted, fetch := e.admit(budget)
	t += fetch
	for _, s := range admitted {
		t += e.prefill(s)
	}
	n += len(admitted)
	if n == 0 {
		return 0
	}
	t += e.profile.Base + context*e.profile.PerContext + float64(n)*e.profile.PerSequence
	t *= e.slow * (1 + e.noise*(2*e.rnd.Float64()-1))
	e.Busy += t
	return t
}

// decode gives each prefilled sequence its token, and the block it needs for it. It
// returns what all of them attend to, in tokens.
func (e *Engine) decode(budget *int) (context float64) {
	for i := 0; i < len(e.running); i++ {
		s := e.running[i]
		s.chunk = 0
		if s.decoding = s.prefilled() && *budget > 0; !s.decoding {
			continue
		}
		if s.context()%e.size == 0 {
			e.grow(s, i)
		}
		context += float64(s.context())
		*budget--
	}
	return context
}

// grow reserves one more private block for the sequence at index i, preempting the
// youngest behind it while there is none.
func (e *Engine) grow(s *Sequence, i int) {
	ok := e.pool.reserve(1)
	for !ok && len(e.running) > i+1 {
		e.preempt()
		ok = e.pool.reserve(1)
	}
	if ok {
		e.pool.private++
		s.private++
	}
}

// preempt sends the last running sequence back to the front of the queue, with
// nothing computed.
func (e *Engine) preempt() {
	last := len(e.running) - 1
	v := e.running[last]
	e.running = e.running[:last]
	e.pool.release(v)
	e.adapters.leave(v.Adapter)
	v.computed, v.chunk, v.decoding = 0, 0, false
	e.waiting = append([]*Sequence{v}, e.waiting...)
	e.Preemptions++
}

// prefill is the time of a sequence's chunk.
func (e *Engine) prefill(s *Sequence) float64 {
	e.Computed += int64(s.chunk)
	return e.profile.Prefill(s.chunk, s.computed)
}

// Finish ends the step: first lists the sequences that have just got their first
// token, done those that are complete and gone.
func (e *Engine) Finish() (first, done []*Sequence) {
	left := e.running[:0]
	for _, s := range e.running {
		switch {
		case s.decoding:
			s.generated++
		case s.chunk > 0:
			e.publish(s)
			if !s.prefilled() {
				break
			}
			s.generated++
			if !s.answered {
				s.answered = true
				first = append(first, s)
			}
		}
		if s.prefilled() && s.generated >= s.Output {
			e.pool.release(s)
			e.adapters.leave(s.Adapter)
			done = append(done, s)
		} else {
			left = append(left, s)
		}
	}
	clear(e.running[len(left):])
	e.running = left
	return first, done
}

// publish makes the blocks that a chunk has filled shared, unless an equal one is.
func (e *Engine) publish(s *Sequence) {
	from, to := s.computed/e.size, (s.computed+s.chunk)/e.size
	s.computed += s.chunk
	for i := from; i < min(to, len(s.Blocks)); i++ {
		id := s.Blocks[i]
		if e.pool.blocks[id] != nil {
			continue
		}
		e.pool.add(id)
		e.pool.private--
		s.private--
		s.shared = append(s.shared, id)
		e.pool.out.stored(GPU, id, parentOf(s.Blocks, i), s.Adapter)
	}
}

// Changes returns what is to be announced since the last call.
func (e *Engine) Changes() []Change {
	list := e.pool.out.list
	e.pool.out.list = nil
	return list
}
