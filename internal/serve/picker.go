package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/eppctl/eppctl/internal/core/affinity"
	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/reason"
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

	// slots bound the picks that compute at one time to the processors there
	// are, so that the run queue stays short and response headers, which must
	// not wait, find a processor at once. Waiting for an engine takes none.
	slots chan struct{}
	// aside is the one place that explanations have among the slots: they cost as
	// much as picks, and must not make those wait.
	aside chan struct{}

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
		slots: make(chan struct{}, runtime.GOMAXPROCS(0)), aside: make(chan struct{}, 1),
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

// Explain decides as Pick does and leaves no trace. A decision without a pod is
// explained too; the refusal is of requests that reach no decision, or have a
// condition that it does not meet.
//
// The card is the decision itself: see reason.
func (p *Picker) Explain(ctx context.Context, a *ask) (*pick.Explanation, *pick.Card, *refusal) {
	if a.Head.RequestID == "" {
		a.Head.RequestID = newRequestID()
	}
	a.Aside = true
	d := &decided{}
	q, no := p.decide(ctx, a, d)
	if q == nil || no != nil && d.card.Outcome == pick.Picked {
		return nil, nil, no
	}
	x := explained(&d.card, d.took)
	if q.Origin.Provider == byNative {
		x.Tokenizer.Parity = p.parity.of(q.Base)
		if f := p.nativeFiles(q.Base); f != nil {
			x.Tokenizer.Split = f.Split
		}
	}
	if a.ShowIDs && q.Unmatched == reason.None {
		x.Prompt = p.promptTokens(&d.card, q)
	}
	if p.past {
		x.Source, x.At = "recording", stamp(time.Unix(0, q.Now).UTC())
	}
	return x, &d.card, nil
}

// promptTokens are the ids of a question, for whoever asked it.
func (p *Picker) promptTokens(c *pick.Card, q *pick.Query) *pick.ExplainedPrompt {
	x := &pick.ExplainedPrompt{IDs: q.Prompt.Tokens}
	if q.Prompt.Cut >= 0 {
		x.Cut = &q.Prompt.Cut
	}
	if w := c.WinnerRow(); w != nil {
		size := int(w.Match.Size)
		if size == 0 && len(w.Pod.Members) > 0 {
			size = p.fleet.Index.ExpectedSize(w.Pod.Members[0])
		}
		x.BlockSize = &size
	}
	if q.Origin.Provider == byNative {
		x.Files = p.nativeFiles(q.Base)
	}
	return x
}

// nativeFiles are those of a model's native tokenizer, nil when unknown.
func (p *Picker) nativeFiles(model string) *view.TokenizerFiles {
	if p.tokenizers == nil {
		return nil
	}
	return nativeFiles(p.tokenizers(), model)
}

// decide reads the request, finds its tokens and fills d's card. Without a query
// the request was refused before there was a card.
func (p *Picker) decide(ctx context.Context, a *ask, d *decided) (*pick.Query, *refusal) {
	r := p.rules.Load()
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
	p.enter(context.WithoutCancel(ctx), a)
	defer p.leave(a)
	v := p.fleet.View()
	q.Now = p.now()
	began := time.Now()
	pick.Decide(&v, q, r.policy, &d.card)
	d.took = time.Since(began)
	return q, verdict(&d.card, q, a.Head.IfAvailable)
}

// bytesPerToken estimates a prompt that could not be tokenized.
const bytesPerToken = 4

// estimate is the length of a prompt nobody has read, in tokens. An announced
// length is believed up to the body limit.
func estimate(a *ask, limit int) int {
	return max(len(a.Body), int(min(a.Head.Length, int64(limit)))) / bytesPerToken
}

// enter takes a slot, unless ctx ends before there is one.
func (p *Picker) enter(ctx context.Context, a *ask) bool {
	if a.Aside && !occupy(ctx, p.aside) {
		return false
	}
	if occupy(ctx, p.slots) {
		return true
	}
	if a.Aside {
		<-p.aside
	}
	return false
}

// leave gives back what enter took.
func (p *Picker) leave(a *ask) {
	<-p.slots
	if a.Aside {
		<-p.aside
	}
}

// occupy takes a place. A free one counts even when ctx has ended.
func occupy(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
	}
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// read completes the query by what the body says: model, adapter and prompt.
// What cannot be understood leaves a reason in the query and is routed by load.
func (p *Picker) read(ctx context.Context, r *rules, a *ask, q *pick.Query) *refusal {
	cut := a.Why == reason.BodyCut || a.Why == reason.Deadline // may still name its model
	switch {
	case a.Why != reason.None && !(cut && len(a.Body) > 0):
		return p.resolve(r, q, false)
	case a.Head.Overlong:
		q.Unmatched = reason.NameTooLong
		return p.resolve(r, q, false)
	case cut && coding(a.Head.Encoding) != "":
		q.Unmatched = reason.Compressed
		return p.resolve(r, q, false)
	case !p.enter(ctx, a):
		q.Unmatched = reason.Deadline
		return p.resolve(r, q, false)
	}
	if err := p.unpack(a, r.limit); err != nil {
		q.Unmatched = reason.Compressed
		return p.resolve(r, q, false)
	}
	req, bad := p.parse(a, prompt.Limits{DefaultModel: cmp.Or(q.Model, r.standard), Cut: cut})
	if bad != nil {
		return problem(bad)
	}
	q.Model = cmp.Or(q.Model, req.Model)
	if no := p.resolve(r, q, !cut && req.Kind != prompt.Unknown); no != nil {
		return no
	}
	a.rename(req.Model, cmp.Or(q.Adapter, q.Base, q.Model))
	q.Adapter = cmp.Or(req.Adapter, q.Adapter)
	if !cut {
		q.PromptTokens = req.Chars / bytesPerToken
		q.Further, q.FurtherPrompts = req.Further.IDs+req.Further.Chars/bytesPerToken, max(req.Prompts-1, 0)
	}
	if a.Why == reason.Deadline {
		return nil // no time for tokens
	}
	p.tokenize(ctx, r.chain(q.Base), a, req, q)
	return nil
}

// tokenize completes the query by the prompt's token ids, or where nobody can tell
// them by its bytes.
func (p *Picker) tokenize(ctx context.Context, c *prompt.Chain, a *ask, req *prompt.Request, q *pick.Query) {
	got := c.Tokens(ctx, req, q.Base, a.text(), func(ctx context.Context) (func(), bool) {
		return func() { p.leave(a) }, p.enter(ctx, a)
	})
	q.Unmatched, a.Doubtful = got.Why, got.Doubtful
	q.Origin = pick.Origin{Provider: got.Provider, Status: string(got.Status)}
	for _, t := range got.Tried {
		q.Origin.Tried = append(q.Origin.Tried, pick.Attempt(t))
	}
	switch {
	case got.Why == reason.None:
		q.Prompt = block.Prompt{Model: q.Base, LoRA: q.Adapter, Salt: req.Salt, Tokens: got.IDs, Cut: got.Cut}
		q.PromptTokens = len(got.IDs)
	case c.Bytes && p.fleet.Affinity != nil && bytesTell(got.Why):
		d := p.fleet.Affinity.Digest(affinity.Namespace{Model: q.Base, LoRA: q.Adapter, Salt: req.Salt})
		prompt.Pieces(a.text(), d.Write)
		if q.Bytes = d.Prefix(); len(q.Bytes.Keys) > 0 {
			q.Origin.Provider = byBytes
		}
	}
	a.Tokenizer = q.Origin.Provider
}

// bytesTell reports whether equal bytes may mean a common cache, although there
// are no ids.
func bytesTell(why reason.Code) bool {
	switch why {
	case reason.PrivateCache, reason.CacheBypassed, reason.BodyCut, reason.NameTooLong:
		return false
	}
	return true
}

// rename plans what the body needs to name the model that the pods serve. A
// gateway's rewrite gives a model to a body without one; an alias does not.
func (a *ask) rename(asked, served string) {
	if a.Head.Rewrite == "" && asked == served {
		return
	}
	w, named := newRewrite(a.text(), served, a.Head.Rewrite != "")
	if w != nil {
		w.plain = a.Plain
	}
	if a.Fixed {
		w = nil
	}
	a.Rewrite, a.Misnamed = w, w == nil && !named
}

// strip lists the headers that the engine is not to see. A rewrite that could not
// be done stays for whoever can.
func (a *ask) strip() []string {
	if a.Rewrite != nil && a.Rewrite.plain != nil { // the changed body goes on uncompressed
		return slices.Concat(a.Head.Strip, a.Head.Codings)
	}
	if !a.Misnamed {
		return a.Head.Strip
	}
	return slices.DeleteFunc(slices.Clone(a.Head.Strip), func(h string) bool { return strings.HasSuffix(h, rewriteSuffix) })
}

// parse reads the body and gives the slot back that enter took.
func (p *Picker) parse(a *ask, lim prompt.Limits) (*prompt.Request, *prompt.Problem) {
	defer p.leave(a)
	return prompt.Parse(a.Head.Path, a.Head.ContentType, a.text(), lim)
}

// unpack reads a compressed body. It gives the slot back that enter took when it
// cannot.
func (p *Picker) unpack(a *ask, limit int) (err error) {
	a.Plain = nil
	if coding(a.Head.Encoding) == "" {
		return nil
	}
	if a.Plain, err = inflate(a.Body, a.Head.Encoding, limit); err != nil {
		p.leave(a)
		p.log.Debug("compressed body not read", "request_id", a.Head.RequestID, "error", err)
	}
	return err
}

// text is the body as JSON.
func (a *ask) text() []byte {
	if a.Plain != nil {
		return a.Plain
	}
	return a.Body
}

// place enters the request into the ledger and, speculatively, into the index.
func (p *Picker) place(c *pick.Card, q *pick.Query) *flight {
	w := c.WinnerRow().Pod
	f := &flight{picker: p, place: p.fleet.Place(w, c.Work(q), q.Now)}
	f.on.Store(w)
	f.picked = w
	f.due = f.place.Ready()
	return f
}

func (p *Picker) answerOf(d *decided, a *ask) answer {
	c := &d.card
	w := c.WinnerRow()
	d.pickID = p.run + "-" + strconv.FormatUint(p.serial.Add(1), 36)
	out := answer{Destination: w.Pod.Target, PickID: d.pickID, Reason: string(c.Unmatched), Strip: a.strip()}
	switch {
	case a.Rewrite != nil:
		out.Rewrite, out.Length = a.Rewrite, a.Rewrite.length(a.Head.Length)
		p.met.rewrites.WithLabelValues("done").Inc()
	case a.Misnamed:
		p.met.rewrites.WithLabelValues("impossible").Inc()
	}
	if out.Reason == "" {
		out.Reason = string(w.Reason)
	}
	if a.NewID {
		out.NewID = a.Head.RequestID
	}
	if len(w.Pod.Members) > 1 && w.Rank >= 0 {
		out.Rank = strconv.Itoa(w.Rank)
	}
	if p.fallbacks > 0 {
		out.Destination = targets(c, p.fallbacks+1)
	}
	if p.scores {
		out.Scores = map[string]float64{}
		for i := range c.Rows {
			if c.Rows[i].Candidate {
				out.Scores[c.Rows[i].Pod.Target] = c.Rows[i].Total
			}
		}
	}
	return out
}

// targets lists the best n endpoints; a proxy with override_host walks the list
// on retries.
func targets(c *pick.Card, n int) string {
	list := make([]string, 0, n)
	for _, i := range c.Best(n, make([]int, 0, n)) {
		list = append(list, c.Rows[i].Pod.Target)
	}
	return strings.Join(list, ",")
}

// priority reads an objective. Objectives are names of a priority; a number is
// one. Unknown names have the default priority.
func priority(objective string) int {
	n, err := strconv.Atoi(objective)
	if err != nil {
		return 0
	}
	return n
}

// newRequestID makes the id of a request that came without one.
func newRequestID() string { return uuid.NewString() }
