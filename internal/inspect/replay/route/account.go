package route

import "github.com/eppctl/eppctl/internal/inspect/replay/engine"

// account is what a peer's router keeps: its own placements, what engines announced,
// and the last scrape, per pod. The peers' rules read it.
type account struct {
	fleet  *Fleet
	pods   []podAccount
	placed map[int]placement
	// speculate counts the blocks of requests in flight as held.
	speculate bool
}

type podAccount struct {
	down     bool
	inFlight int
	waiting  int     // before their first token
	uncached int     // tokens of these
	finish   float64 // s: when all that was placed would be answered
	work     float64 // s: prefill of the waiting ones
	blocks   int     // of all prompts in flight, shared ones counted each time
	gauges   engine.Gauges
	held     blockSet
	pending  map[uint32]int
}

type placement struct {
	pod      int
	uncached int
	prefill  float64
	answered bool
}

func newAccount(f *Fleet, speculate bool) *account {
	a := &account{fleet: f, pods: make([]podAccount, f.Pods), placed: map[int]placement{}, speculate: speculate}
	for i := range a.pods {
		a.pods[i].held, a.pods[i].pending = newBlockSet(f.Distinct), map[uint32]int{}
	}
	return a
}

// match is how many leading blocks of a prompt the pod is believed to hold.
func (a *account) match(i int, blocks []uint32) int {
	p := &a.pods[i]
	k := 0
	for k < len(blocks) && (p.held.has(blocks[k]) || a.speculate && p.pending[blocks[k]] > 0) {
		k++
	}
	return k
}

// uncached is the rest of the prompt, in tokens.
func (a *account) uncached(r *Request, matched int) int {
	return max(r.Prompt-matched*a.fleet.BlockSize, 1)
}

// prefill is the time of a prompt behind what matched.
func (a *account) prefill(r *Request, matched int) float64 {
	u := a.uncached(r, matched)
	return a.fleet.Profile.Prefill(u, r.Prompt-u)
}

// queue is the time until the pod could begin, by our own placements.
func (a *account) queue(i int, now int64) float64 { return max(0, a.pods[i].finish-seconds(now)) }

func (a *account) place(r *Request, i, matched int, now int64) {
	p := &a.pods[i]
	x := placement{pod: i, uncached: a.uncached(r, matched), prefill: a.prefill(r, matched)}
	a.placed[r.Index] = x
	p.inFlight++
	p.waiting++
	p.uncached += x.uncached
	p.work += x.prefill
	p.finish = max(p.finish, seconds(now)) + x.prefill
	p.blocks += len(r.Blocks)
	for _, b := range r.Blocks {
		p.pending[b]++
	}
}

func (a *account) answer(x *placement, now int64) {
	p := &a.pods[x.pod]
	p.waiting--
	p.uncached -= x.uncached
	if p.work -= x.prefill; p.waiting == 0 {
		p.work = 0
	}
	p.finish = seconds(now) + p.work
	x.answered = true
}

func (a *account) first(r *Request, now int64) {
	x := a.placed[r.Index]
	a.answer(&x, now)
	a.placed[r.Index] = x
}

func (a *account) end(r *Request, now int64) {
	x := a.placed[r.Index]
	delete(a.placed, r.Index)
	if !x.answered {
		a.answer(&x, now)
	}
	p := &a.pods[x.pod]
	p.inFlight--
	p.blocks -= len(r.Blocks)
	for _, b := range r.Blocks {
		if p.pending[b]--; p.pending[b] == 0 {
			delete(p.pending, b)
		}
	}
}

func (a *account) announce(i int, changes []engine.Change) {
	for _, c := range changes {
		if c.Tier != engine.GPU {
			continue
		}
		for _, b := range c.Blocks {
			a.pods[i].held.set(b, c.Stored)
		}
	}
}

// blockSet is a set of block numbers.
type blockSet []uint64

func newBlockSet(n int) blockSet { return make(blockSet, n/64+1) }

func (b blockSet) has(i uint32) bool { return b[i/64]>>(i%64)&1 == 1 }

func (b blockSet) set(i uint32, on bool) {
	if on {
		b[i/64] |= 1 << (i % 64)
	} else {
		b[i/64] &^= 1 << (i % 64)
	}
}
