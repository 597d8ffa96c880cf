package sim

import (
	"slices"
	"time"
)

// scheduler is an engine's continuous batching: each step decodes one token of
// every running sequence, continues prefills in chunks and admits waiting
// requests in order of arrival, within a token budget and the block pool. It
// has no clock and no lock: the engine calls plan, waits for the step's time,
// and calls finish.
type scheduler struct {
	prof    Profile
	size    int // tokens per block
	pool    *pool
	sglang  bool // store after prefill and at the end, one copy per content
	running []*sequence
	waiting []*sequence
	events  []kvEvent // of the step under way, in order of cause
	stats   counters
}

// counters only grow.
type counters struct {
	queried, hit   int // prompt tokens looked up and found at admission
	prompt, output int
	finished       int
	aborted        int
	preempted      int
	evicted        int
}

// plan decides the next step and returns how long it takes; false when there is
// nothing to do.
func (s *scheduler) plan() (time.Duration, bool) {
	s.dropAborted()
	budget := s.prof.Budget
	budget = s.planDecodes(budget)
	budget = s.planPrefills(budget)
	s.admit(budget)
	var prefill, context, sequences int
	var pairs float64
	for _, q := range s.running {
		if q.chunk == 0 {
			continue
		}
		sequences++
		if q.decoding() {
			context += q.computed
			continue
		}
		prefill += q.chunk
		pairs += float64(q.chunk) * (float64(q.computed) + float64(q.chunk)/2)
	}
	if sequences == 0 {
		return 0, false
	}
	if !s.sglang {
		// vLLM makes blocks findable when they are scheduled, so an equal
		// prompt in the next step hits blocks that are still being computed.
		for _, q := range s.running {
			s.store(q, q.computed+q.chunk)
		}
	}
	return s.prof.stepTime(prefill, pairs, context, sequences), true
}

func (s *scheduler) planDecodes(budget int) int {
	for i := 0; i < len(s.running); i++ {
		q := s.running[i]
		if !q.decoding() {
			continue
		}
		for i < len(s.running) && !s.grow(q, q.computed+1) {
			s.preemptLast()
		}
		if i >= len(s.running) || budget == 0 { // q itself was preempted
			break
		}
		q.chunk = 1
		budget--
	}
	return budget
}

func (s *scheduler) planPrefills(budget int) int {
	for _, q := range s.running {
		if q.chunk == 0 && !q.decoding() && budget > 0 {
			q.chunk = min(q.missing(), budget)
			budget -= q.chunk
		}
	}
	return budget
}

// admit starts waiting requests in order; a head that does not fit holds up the
// ones behind it, as in the engines.
func (s *scheduler) admit(budget int) {
	for len(s.waiting) > 0 && budget > 0 && len(s.running) < s.prof.MaxRunning {
		q := s.waiting[0]
		q.hashes = chainAll(q.hashes, q.ns, q.tokens, s.size)
		// The last token is always computed, for its logits.
		found := s.pool.match(q.hashes[:min(len(q.hashes), (len(q.tokens)-1)/s.size)])
		need := s.blocksFor(len(q.tokens)) - found
		if s.pool.free-s.pool.idle(q.hashes[:found]) < need {
			return
		}
		s.waiting = s.waiting[1:]
		q.blocks = s.pool.hold(q.hashes[:found])
		q.computed, q.stored = found*s.size, found
		if q.cached < 0 {
			q.cached = q.computed
			s.stats.queried += q.prompt
			s.stats.hit += q.cached
		}
		s.grow(q, len(q.tokens))
		q.chunk = min(q.missing(), budget)
		budget -= q.chunk
		s.running = append(s.running, q)
	}
}

func (s *scheduler) blocksFor(tokens int) int { return (tokens + s.size - 1) / s.size }

// grow holds enough blocks for so many tokens and announces what it evicted.
func (s *scheduler) grow(q *sequence, tokens int) bool {
	n := s.blocksFor(tokens) - len(q.blocks)
	if n <= 0 {
		return true
	}
	blocks, evicted, ok := s.pool.take(n)
	if !ok {
		return false
	}
	q.blocks = append(q.blocks, blocks...)
	if len(evicted) > 0 {
		s.stats.evicted += len(evicted)
		s.events = append(s.events, removed(evicted))
	}
	return true
}

// preemptLast sends the youngest running sequence back to the head of the queue
// without its blocks; what it generated is computed again.
func (s *scheduler) preemptLast() {
	q := s.running[len(s.running)-1]
	s.running = s.running[:len(s.running)-1]
	s.pool.release(q.blocks)
	q.blocks, q.computed, q.stored, q.chunk = nil, 0, 0, 0
	s.waiting = slices.Insert(s.waiting, 0, q)
	s.stats.preempted++
}

// store makes q's full blocks findable up to so many tokens and announces them.
func (s *scheduler) store(q *sequence, tokens int) {
	full := tokens / s.size
	if full <= q.stored {
		return
	}
	q.hashes = chainAll(q.hashes, q.ns, q.tokens[:full*s.size], s.size)
	first := q.stored
	for i := first; i < full; i++ {
		if s.sglang && s.adopt(q, i) {
			s.announce(q, first, i)
			first = i + 1
			continue
		}
		s.pool.store(q.blocks[i], q.hashes[i])
	}
	s.announce(q, first, full)
	q.stored = full
}

// adopt replaces q's copy of block i by one that is already there: a radix tree
// keeps one, and says nothing of the second.
func (s *scheduler) adopt(q *sequence, i int) bool {
	if s.pool.match(q.hashes[i:i+1]) == 0 {
		return false
	}
	own := q.blocks[i]
	q.blocks[i] = s.pool.hold(q.hashes[i : i+1])[0]
	s.pool.release([]int32{own})
	return true
}

func (s *scheduler) announce(q *sequence, from, to int) {
	if from >= to {
		return
	}
	e := kvEvent{kind: storedEvent, ns: q.ns, session: q.session, first: from == 0,
		hashes: slices.Clone(q.hashes[from:to]),
		tokens: slices.Clone(q.tokens[from*s.size : to*s.size])}
	if from > 0 {
		e.parent = q.hashes[from-1]
	}
	s.events = append(s.events, e)
}

// finish applies the step that plan began and returns its events.
func (s *scheduler) finish() []kvEvent {
	live := s.running[:0]
	for _, q := range s.running {
		q.computed += q.chunk
		ran := q.chunk > 0
		q.chunk = 0
		if ran && q.missing() == 0 && !q.aborted {
			if q.generated() == 0 {
				s.stats.prompt += q.prompt
				if s.sglang {
					s.store(q, q.computed)
				}
			}
			q.sample()
			s.stats.output++
		}
		if q.generated() >= q.limit || q.aborted {
			s.end(q)
			continue
		}
		live = append(live, q)
	}
	clear(s.running[len(live):])
	s.running = live
	events := s.events
	s.events = nil
	return events
}

// end gives back a sequence's blocks and closes its output.
func (s *scheduler) end(q *sequence) {
	if s.sglang {
		s.store(q, q.computed)
	}
	s.pool.release(q.blocks)
	q.blocks = nil
	if q.aborted {
		s.stats.aborted++
	} else {
		s.stats.finished++
	}
	close(q.out)
}

func (s *scheduler) dropAborted() {
	drop := func(q *sequence) bool {
		if q.aborted {
			s.end(q)
		}
		return q.aborted
	}
	s.waiting = slices.DeleteFunc(s.waiting, drop)
	s.running = slices.DeleteFunc(s.running, drop)
}

// reset empties an idle pool, as /reset_prefix_cache and /flush_cache do.
func (s *scheduler) reset() bool {
	if len(s.running) > 0 || !s.pool.reset() {
		return false
	}
	s.events = append(s.events, kvEvent{kind: clearedEvent})
	return true
}
