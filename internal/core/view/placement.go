package view

import (
	"slices"
	"sync"
	"time"

	"github.com/eppctl/eppctl/internal/core/affinity"
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
	// Further are the prompts behind the first of several, likewise. Tokens is of all.
	Further []block.Prompt
	Tokens  int
	// Bytes stand for a prompt that is not known in ids.
	Bytes affinity.Prefix
	// Adapter is the LoRA adapter that the pod needs for it, "" = none.
	Adapter string
	// Uncached are the tokens of the prompts that the pod is not known to hold: when
	// they fill a block of one, the engine has to announce it.
	Uncached int
	// Rank is the data-parallel rank the request is sent to, -1 = the engine's
	// choice.
	Rank int
	// Nominal is what the prefill takes by Prior on the reference, which the rate is
	// learned against; 0 = the work is not known well enough to learn from it.
	Nominal time.Duration
	Prior   Prior
	// Limits are those of the policy; the zero Limits mean DefaultLimits.
	Limits Limits
}

// longestPrefill bounds what a request is taken to compute, so that sums over a
// million of them fit: with a rate that is configured absurdly low the eighth wrapped
// around, and the fullest pod looked idle. No engine is given an hour for a prompt.
const longestPrefill = time.Hour

// announceBy is how long after a request's end the engine may take to announce
// its blocks. vLLM 0.32.0 sent a request's last batch after the response in 19 to
// 51 % of all requests on a busy machine, 3 to 128 ms later at p90, 1.05 s at
// worst.
const announceBy = 2 * time.Second

// Placement is one request's entry in the ledger: made when it is placed, gone
// when it ends. Any goroutine may call any method; End takes effect once,
// whichever of several paths reports it first, and calls after it do nothing.
type Placement struct {
	ledger *Ledger
	placed int64 // ns; at changes when the request moves
	near   *affinity.Table

	mu       sync.Mutex // taken before the account's
	account  *account
	work     Work
	chunks   []uint64 // distinct
	loose    int64    // tokens that fill none and so are shared with nobody
	expect   index.Expectation
	further  []index.Expectation // of the prompts behind the first
	expected bool
	announce bool // the engine has to announce blocks of it
	answered bool
	failed   bool  // with a server error of the engine
	first    int64 // ns, of the first byte
	ended    bool

	// Written under both locks, read under either.
	due int64 // ns, estimated first byte that nobody reports; 0 = it is reported

	// Guarded by the account's lock. The first ones are read for each decision.
	at           int64
	prefill      time.Duration // work's, for good
	lane         int           // number in the account's lanes
	older, newer *Placement
	ready        int64  // ns, estimated first byte when it was placed
	metered      bool   // counted by the meter
	probe        uint32 // round of the circuit it is a probe of, plus one; 0 = none
}

// Place enters a request into a pod's account.
func (l *Ledger) Place(p *pod.Pod, w Work, now int64) *Placement {
	w.Prefill, w.Nominal = min(w.Prefill, longestPrefill), min(w.Nominal, longestPrefill)
	r := &Placement{ledger: l, work: w, prefill: w.Prefill, placed: now}
	r.loose = int64(w.Tokens)
	if w.Prompt != nil {
		r.cut(&w)
		l.sharers.add(r.chunks, 1)
	}
	l.means.placed(w.Prefill, now)
	r.work.Prompt, r.work.Further = nil, nil // token ids are not kept
	r.enter(l.account(p), now)
	return r
}

// Place enters a request into a pod's account and counts its prompt as held by
// the pod from now until announceBy after the request's end, long before the
// engine announces it: without that, equal prompts in a burst spread over the fleet (1.93 s against
// 4.64 s mean TTFT on the simulated shared-prefix burst).
func (f *Fleet) Place(p *pod.Pod, w Work, now int64) *Placement {
	r := f.Load.Place(p, w, now)
	r.near = f.Affinity
	r.near.Place(p, w.Bytes)
	if w.Prompt == nil || len(w.Prompt.Tokens) == 0 || len(p.Members) == 0 {
		return r
	}
	// Of n prompts some one lacks at least the n-th part of all.
	r.announce = w.Uncached >= (1+len(w.Further))*f.Index.ExpectedSize(p.Members[0])
	if m, ok := member(p, w.Rank); ok {
		r.expect, r.expected = f.Index.Expect(m, w.Prompt), true
		for i := range w.Further {
			r.further = append(r.further, f.Index.Expect(m, &w.Further[i]))
		}
	}
	return r
}

// cut cuts the prompts into chunks. A chunk that several of them begin with is one.
func (r *Placement) cut(w *Work) {
	h := r.ledger.hasher
	r.chunks = chunks(h, w.Prompt)
	for i := range w.Further {
		r.chunks = append(r.chunks, chunks(h, &w.Further[i])...)
	}
	r.loose = max(0, r.loose-int64(len(r.chunks)*chunkTokens))
	if len(w.Further) > 0 {
		slices.Sort(r.chunks)
		r.chunks = slices.Compact(r.chunks)
	}
}

// enter adds the request to an account. mu is held or r is not shared yet.
func (r *Placement) enter(a *account, now int64) {
	r.account = a
	a.held.add(r.chunks, r.loose)
	a.add(r, now)
}

// leave takes the request off its present account.
func (r *Placement) leave(now int64) {
	r.account.held.remove(r.chunks, r.loose)
	r.account.drop(r, now)
}

// unexpect ends what the index expects of the request.
func (r *Placement) unexpect() {
	if r.expected {
		r.expected = false
		r.expect.Release()
		for _, x := range r.further {
			x.Release()
		}
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

// Ready is when the request's first byte is expected, by what was on its rank when
// it was placed (ns).
func (r *Placement) Ready() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	return r.ready
}

// FirstByte reports the first byte of the response, as the engine sends it once
// the prompt is computed. Only the first call counts.
func (r *Placement) FirstByte(now int64) { r.respond(true, now) }

// Whole reports the first byte of a response that comes in one piece, after its
// last token: the pod has answered, but when it had computed the prompt is not
// known.
func (r *Placement) Whole(now int64) { r.respond(false, now) }

func (r *Placement) respond(timed bool, now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered || r.ended {
		return
	}
	a := r.account
	a.change()
	var sample float64
	learned := false
	if timed && !r.failed && r.due == 0 {
		sample, learned = a.lanes[r.lane].meter.answer(r, now)
	}
	a.answer(r, now)
	if !r.failed {
		a.circuit.answer()
	}
	a.mu.Unlock()
	r.answered, r.first = true, now
	if learned {
		r.ledger.rates.add(r.work.Prior, sample)
	}
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
	r.ledger.sharers.add(r.chunks, -1)
	r.ledger.means.left(r.placed)
	switch {
	case r.answered:
		r.ledger.means.stayed(time.Duration(now - r.first))
	case r.overdue(now):
		r.ledger.means.stayed(time.Duration(now - r.due))
	default: // it may never have been computed
		r.unexpect()
		return
	}
	if r.failed {
		r.unexpect()
		return
	}
	r.expect.Expire(now + int64(announceBy))
	for _, x := range r.further {
		x.Expire(now + int64(announceBy))
	}
	if r.announce {
		r.account.caused.add(r.work.Rank)
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
	r.unexpect()
	r.announce = false // who else holds what is not known here
	r.enter(next, now)
	r.near.Place(p, r.work.Bytes)
}
