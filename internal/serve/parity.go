package serve

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/eppctl/eppctl/internal/core/encode"
	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/parity"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/modelsource"
)

// parityCheck finds out whether native token ids are those of the engines, and lets
// the tokenizers claim so. run asks engines about probes, one question at a time;
// routed and sweep compare clients' requests with events. run is one goroutine; the
// other methods may be called from any.
type parityCheck struct {
	tokens *tokens
	fleet  *view.Fleet
	met    *metrics
	log    *slog.Logger
	now    func() int64 // ns, of the feed's clock
	http   *http.Client
	watch  *parity.Watch
	pauses parityPauses

	mu     sync.Mutex
	models map[string]*modelParity
}

// parityPauses are the times between questions.
type parityPauses struct {
	look     time.Duration // between two looks for something to ask
	question time.Duration // between two questions, on average: half to one and a half
	again    time.Duration // between two rounds with an engine
	first    time.Duration // before an engine that does not answer is asked again; doubled up to again
	deadline time.Duration // of one question by one interface
}

// An engine's answers change with its process and with the files here, and both are
// noticed within a second or two: the hour is for what neither shows. A round
// asks for 21 short texts over three seconds. How much of an engine that takes was not
// measured: it is the load of one client that tokenizes seven prompts a second. Nobody
// waits for the answer to a question, and a busy engine may take its time.
var defaultPauses = parityPauses{look: time.Second, question: 150 * time.Millisecond, again: time.Hour, first: 10 * time.Second, deadline: 5 * time.Second}

// modelParity is what is known of one model's native tokenizer.
type modelParity struct {
	of     *modelsource.Model     // what was compared; another one begins anew
	rounds map[asked]*parityRound // by engine
	// left is what the last engine that was compared found, where its ids differed and it
	// is gone: until another one is compared, nothing speaks for the ids.
	left   *parityRound
	nobody string // why there is no engine to ask, "" = there is one
	tally  parity.Tally
	parted string // pod that announced what tally.Parted tells of
	shown  view.Parity
}

func newParityCheck(t *tokens, f *view.Fleet, met *metrics, log *slog.Logger, now func() int64) *parityCheck {
	return &parityCheck{
		tokens: t, fleet: f, met: met, log: log, now: now, http: &http.Client{Transport: &http.Transport{IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: feed.HeaderBytes}},
		watch: parity.NewWatch(rand.Uint64()), pauses: defaultPauses, models: map[string]*modelParity{},
	}
}

// run asks engines until ctx ends.
func (c *parityCheck) run(ctx context.Context) {
	defer c.http.CloseIdleConnections()
	for {
		pause := c.pauses.look
		if model, of, e := c.next(); of != nil {
			c.record(model, of, e, c.round(ctx, of, model, e))
			pause = c.jitter()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func (c *parityCheck) jitter() time.Duration {
	return c.pauses.question/2 + rand.N(c.pauses.question+1)
}

// next is the model and the engine to ask now; nil = there is nothing to ask. Models
// about which nothing is known come first. What is gone is forgotten on the way.
func (c *parityCheck) next() (model string, of *modelsource.Model, e asked) {
	loaded := c.tokens.loaded()
	set := c.fleet.Pods.Snapshot()
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.models {
		if loaded[name] == nil {
			delete(c.models, name)
		}
	}
	known := false // the model to ask about was compared with some engine
	for name, m := range loaded {
		p := c.begin(name, m)
		engines, untold := c.engines(set, name)
		p.nobody = nobody(engines, untold)
		p.change(func() {
			maps.DeleteFunc(p.rounds, func(at asked, _ *parityRound) bool { return !engines[at] })
		})
		c.show(name, p)
		for at := range engines {
			r := p.rounds[at]
			if r != nil && c.now() < r.again || of != nil && (!known || p.compared()) {
				continue
			}
			model, of, e, known = name, m, at, p.compared()
		}
	}
	return model, of, e
}

// begin returns what is known of a model; of other files nothing is. mu is held.
func (c *parityCheck) begin(name string, m *modelsource.Model) *modelParity {
	p := c.models[name]
	if p == nil || p.of != m {
		p = &modelParity{of: m, rounds: map[asked]*parityRound{}}
		if old := c.models[name]; old != nil {
			p.tally.Total = old.tally.Total
		}
		c.models[name] = p
		c.show(name, p)
	}
	return p
}

// record takes in what a round found.
func (c *parityCheck) record(model string, of *modelsource.Model, e asked, r *parityRound) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.models[model]
	if p == nil || p.of != of { // the files changed meanwhile
		return
	}
	pause := c.pauses.again
	if r.compared == 0 && r.why == reason.ParityFailing {
		r.failures = 1
		if old := p.rounds[e]; old != nil {
			r.failures += old.failures
		}
		pause = min(c.pauses.first<<min(r.failures-1, 16), c.pauses.again)
	}
	r.at = c.now()
	r.again = r.at + int64(pause/2) + rand.N(int64(pause)+1)
	r.engine = e.name
	p.change(func() {
		// Earlier processes of this engine.
		maps.DeleteFunc(p.rounds, func(at asked, _ *parityRound) bool { return at.url == e.url })
		p.rounds[e] = r
	})
	c.show(model, p)
}

// change changes rounds, and keeps a difference that goes away with its engine, or with
// the engine's answers, rather than by another engine's agreeing.
func (p *modelParity) change(do func()) {
	was := p.telling()
	do()
	switch {
	case p.compared():
		p.left = nil
	case was != nil && was.differed > 0:
		p.left = was
	}
}

// telling is the round that says most, nil = there is none.
func (p *modelParity) telling() (tells *parityRound) {
	for _, r := range p.rounds {
		if tells == nil || r.weight() > tells.weight() || r.weight() == tells.weight() && r.at > tells.at {
			tells = r
		}
	}
	if p.left != nil {
		return p.left
	}
	return tells
}

// nobody says why none of engines can be asked; untold is the number of pods that do not
// tell their model.
func nobody(engines map[asked]bool, untold int) string {
	switch {
	case len(engines) > 0:
		return ""
	case untold > 0:
		return fmt.Sprintf("no pod is known to serve it; %d without a model, told or configured: set pods[].model", untold)
	}
	return "no pod serves it, or those that do are draining"
}

// show works out a model's state, tells the tokenizer what it may claim, and logs
// what has changed. mu is held.
func (c *parityCheck) show(model string, p *modelParity) {
	next := p.state(c.now())
	was := p.shown
	p.shown = next
	p.of.SetStanding(p.standing(&next))
	if was.State == next.State && was.Why == next.Why {
		return
	}
	log := c.log.With("model", model, "parity", next.String(), "engine", next.Engine)
	switch next.State {
	case passed:
		log.Info("native token ids are those of the engine; they count as exact", "skipped", next.Skipped)
	case failed:
		log.Warn("native token ids are not those of the engine; they do not count as exact, and others are asked first", "reason", next.Why, "detail", next.Detail)
	default:
		log.Debug("native token ids are not compared with an engine", "reason", next.Why, "detail", next.Detail)
	}
}

// standing is what a state means for the model's tokenizer. Of chats that an engine's
// /tokenize knows nothing of, one that has nothing else to ask proves nothing.
func (p *modelParity) standing(x *view.Parity) encode.Standing {
	switch {
	case x.State == passed && p.of.Identity.TokenizeDiffers && !p.comparedChats():
		return encode.ProvenTexts
	case x.State == passed:
		return encode.Proven
	case x.State == failed && x.Why == string(reason.ParityEvents):
		return encode.Doubted
	case x.State == failed:
		return encode.Refuted
	}
	return encode.Untested
}

// comparedChats reports whether chats have been, by any engine.
func (p *modelParity) comparedChats() bool {
	for _, r := range p.rounds {
		if r.chats > 0 {
			return true
		}
	}
	return false
}

// words of view.Parity.State.
const (
	passed = "passed"
	failed = "failed"
	notRun = "not-run"
)

// compared reports whether any engine has been.
func (p *modelParity) compared() bool {
	for _, r := range p.rounds {
		if r.compared > 0 {
			return true
		}
	}
	return false
}

// state sums up: one engine that differs is enough to fail, one that is equal to
// pass when none differs, and events have a say of their own. An engine that is gone
// has no say any more in what passes, but what it refuted is refuted until another agrees.
func (p *modelParity) state(now int64) view.Parity {
	x := view.Parity{State: notRun, Why: string(reason.ParityPending)}
	if p.nobody != "" {
		x.Why, x.Detail = string(reason.ParityNobody), p.nobody
	}
	if tells := p.telling(); tells != nil {
		x.Engine, x.Compared, x.Differed, x.Skipped = tells.engine, tells.compared, tells.differed, tells.skipped
		x.AgeMs = age(now, tells.at)
		switch {
		case tells.differed > 0:
			x.State, x.Why, x.Detail = failed, string(reason.ParityProbe), tells.first.String()
			x.Probe, x.DiffersAt = tells.first.Probe, &tells.first.At
		case tells.compared > 0:
			x.State, x.Why, x.Detail = passed, "", ""
		default:
			x.Why, x.Detail = string(tells.why), tells.detail
		}
	}
	t := &p.tally
	if t.Failed() && x.State != failed {
		x.State, x.Why = failed, string(reason.ParityEvents)
		p.tellParted(&x)
	}
	x.Requests = view.ParityRequests{
		Equal: t.Total[parity.Equal], Differs: t.Total[parity.Differs], Unseen: t.Total[parity.Unseen], Unknown: t.Total[parity.Unknown],
	}
	return x
}

// of is the state of a model's native tokenizer, nil when it has none.
func (c *parityCheck) of(model string) *view.Parity {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.models[model]
	if p == nil {
		return nil
	}
	x := p.state(c.now())
	return &x
}
