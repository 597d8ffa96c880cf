package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Picker turns a request into a decision: the one path of ext_proc and of
// explain. Both run decide; only Pick leaves traces. Safe for concurrent use.
type Picker struct {
	fleet *view.Fleet
	rules atomic.Pointer[rules]
	ring  *ring
	met   *metrics
	log   *slog.Logger
	clock func() time.Time // of decisions and accounting: the feed's, which stamps what they read

	fallbacks int
	scores    bool
	slots     slots

	// past: the clock stands still at a moment of a recording.
	past bool

	timed atomic.Bool // the proxy has named an engine's time: see byProxy

	streams func() (open int64, loose int) // set by the server, for display
	// tokenizers are the providers of token ids and their states, likewise.
	tokenizers func() []view.TokenizerState
	parity     *parityCheck           // of native token ids; nil = nobody compares
	events     func() []feed.Counters // the same
	source     string                 // of the fleet, "" = live
	tallies    tallies
	decisions  *decisions // that are recorded; nil = none is

	run    string // random, tells pick ids of one process from another's
	serial atomic.Uint64
}

func newPicker(f *view.Fleet, r *rules, cards int, o Options, met *metrics) *Picker {
	p := &Picker{
		fleet: f, ring: newRing(cards), met: met, log: o.Log, clock: feed.Clock,
		fallbacks: o.Fallbacks, scores: o.EmitScores,
		slots: newSlots(runtime.GOMAXPROCS(0)),
	}
	p.rules.Store(r)
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	p.run = hex.EncodeToString(b[:])
	return p
}

func (p *Picker) now() int64              { return p.clock().UnixNano() }
func (p *Picker) requestLimit() int       { return p.rules.Load().limit }
func (p *Picker) deadline() time.Duration { return p.rules.Load().deadline }

// Pick decides and places the request. ctx carries the pick deadline; past it the
// request is routed without its prefix.
func (p *Picker) Pick(ctx context.Context, a *ask) (*flight, *refusal) {
	began := time.Now()
	d := p.ring.take()
	q, no := p.decide(ctx, a, d)
	defer func() { observe(p.met.pickSeconds, time.Since(began), a.Head.RequestID) }()
	if q != nil {
		observe(p.met.decide, d.took, a.Head.RequestID)
	}
	p.met.count(&d.card, q, no, a, p.label(q))
	if no != nil {
		p.log.Debug("refused", "request_id", a.Head.RequestID, "status", no.Status, "code", no.Code)
		if q == nil { // no decision was reached
			p.ring.drop(d)
		} else {
			p.decisions.decided(d, q, no)
			p.ring.put(d)
		}
		return nil, no
	}
	f := p.place(&d.card, q)
	if !a.Doubtful {
		f.watched = p.parity.routed(&d.card, q)
	}
	p.tallies.picked(&d.card)
	f.out = p.answerOf(d, a)
	f.noting = p.decisions.decided(d, q, nil)
	if p.log.Enabled(ctx, slog.LevelDebug) {
		p.log.Debug("picked", "request_id", a.Head.RequestID, "pick_id", d.pickID, "pod", f.pod().Spec.Name, "reason", f.out.Reason)
	}
	p.ring.put(d)
	return f, nil
}

// decide reads the request, finds its tokens and fills d's card. Without a query
// the request was refused before there was a card.
func (p *Picker) decide(ctx context.Context, a *ask, d *decided) (*pick.Query, *refusal) {
	r, came := p.rules.Load(), time.Now()
	a.Rewrite, a.Misnamed = nil, a.Head.Rewrite != "" && !a.Bodyless
	q := &pick.Query{
		RequestID: a.Head.RequestID, Subset: a.Subset, Priority: priority(a.Head.Objective),
		Model: a.Head.Rewrite, Unmatched: a.Why,
		PromptTokens: estimate(a, r.limit),
	}
	if no := p.read(ctx, r, a, q); no != nil {
		return nil, no
	}
	if err := ctx.Err(); errors.Is(err, context.Canceled) {
		return nil, clientGone()
	}
	// Whoever holds the slots may take longer than this request has: it then decides
	// beside them, which costs microseconds.
	if p.slots.enter(ctx, a.Aside) {
		defer p.slots.leave(a.Aside)
	} else if errors.Is(ctx.Err(), context.Canceled) {
		return nil, clientGone()
	} else {
		p.met.crowded.Add(1)
	}
	v := p.fleet.View()
	q.Now = p.now()
	began := time.Now()
	d.read = began.Sub(came)
	pick.Decide(&v, q, r.policy, &d.card)
	d.took = time.Since(began)
	return q, verdict(&d.card, q, a.Head.IfAvailable)
}

// place enters the request into the ledger and, speculatively, into the index.
func (p *Picker) place(c *pick.Card, q *pick.Query) *flight {
	w := c.WinnerRow().Pod
	f := &flight{picker: p, place: p.fleet.Place(w, c.Work(q), q.Now), at: q.Now}
	f.on.Store(w)
	f.picked = w
	f.due = f.place.Ready()
	return f
}
