package view

import (
	"sync"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// Work is what one request means for the pod it is placed on.
type Work struct {
	// Prefill is the time the pod will compute until the first token, the
	// slow-down of its hardware included.
	Prefill time.Duration
	// Prompt is the tokenized prompt, nil when it is not known; then Tokens is
	// an estimate. It is read during Place only and not kept.
	Prompt *block.Prompt
	Tokens int
	// Rank is the data-parallel rank the request is sent to, -1 = the engine's
	// choice.
	Rank int
}

// Placement is one request's entry in the ledger: made when it is placed, gone
// when it ends. Any goroutine may call any method; End takes effect once,
// whichever of several paths reports it first, and calls after it do nothing.
type Placement struct {
	ledger *Ledger

	mu       sync.Mutex // taken before the account's
	account  *account
	work     Work
	chunks   []uint64
	expect   index.Expectation
	expected bool
	answered bool
	first    int64 // ns, of the first byte
	ended    bool

	// Written under both locks, read under either.
	due int64 // ns, estimated first byte that nobody reports; 0 = it is reported

	// Guarded by the account's lock.
	at           int64
	older, newer *Placement
}

// Place enters a request into a pod's account.
func (l *Ledger) Place(p *pod.Pod, w Work, now int64) *Placement {
	r := &Placement{ledger: l, work: w}
	if w.Prompt != nil {
		r.chunks = chunks(l.hasher, w.Prompt)
	}
	l.means.placed(w.Prefill)
	r.work.Prompt = nil // token ids are not kept
	r.enter(l.account(p), now)
	return r
}

// Place enters a request into a pod's account and counts its prompt as held by
// the pod from now until the request ends, long before the engine announces it:
// without that, equal prompts in a burst spread over the fleet (1.93 s against
// 4.64 s mean TTFT on the simulated shared-prefix burst).
func (f *Fleet) Place(p *pod.Pod, w Work, now int64) *Placement {
	r := f.Load.Place(p, w, now)
	if m, ok := member(p, w.Rank); ok && w.Prompt != nil && len(w.Prompt.Tokens) > 0 {
		r.expect, r.expected = f.Index.Expect(m, w.Prompt), true
	}
	return r
}

// enter adds the request to an account. mu is held or r is not shared yet.
func (r *Placement) enter(a *account, now int64) {
	r.account = a
	a.held.add(r.chunks, r.rest())
	a.add(r, now)
}

// leave takes the request off its present account.
func (r *Placement) leave(now int64) {
	r.account.drop(r, now)
	r.account.held.remove(r.chunks, r.rest())
	if r.expected {
		r.expected = false
		r.expect.Release()
	}
}

// member is the cache that will hold the prompt. Which of several ranks an
// engine will choose is unknown: then there is none.
func member(p *pod.Pod, rank int) (pod.Member, bool) {
	if len(p.Members) == 1 {
		rank = 0
	}
	if rank < 0 || rank >= len(p.Members) {
		return 0, false
	}
	return p.Members[rank], true
}

// rest is the part of the prompt that fills no chunk and so is shared with
// nobody.
func (r *Placement) rest() int64 {
	return max(0, int64(r.work.Tokens-len(r.chunks)*chunkTokens))
}

// FirstByte reports the first byte of the response. Only the first call counts.
func (r *Placement) FirstByte(now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered || r.ended {
		return
	}
	r.account.mu.Lock()
	r.account.answer(r, now)
	r.account.mu.Unlock()
	r.answered, r.first = true, now
}

// End reports that the request is over: end of stream, reset, abort, engine
// error or the pod's removal.
func (r *Placement) End(now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.ended = true
	r.leave(now)
	switch {
	case r.answered:
		r.ledger.means.stayed(time.Duration(now - r.first))
	case r.overdue(now):
		r.ledger.means.stayed(time.Duration(now - r.due))
	}
}

// Move reports that another pod than the chosen one serves the request, as after
// a retry by the proxy. The new pod gets no speculative index entry: by the time
// the answer names it, its engine is about to announce the blocks itself.
func (r *Placement) Move(p *pod.Pod, now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	next := r.ledger.account(p)
	if next == r.account {
		return
	}
	r.leave(now)
	r.enter(next, now)
}
