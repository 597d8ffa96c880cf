package serve

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/parity"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/modelsource"
)

// asked is one process of an engine: another one may be of another release.
type asked struct {
	name  string // of the pod, or the URL
	url   string
	is    pod.Engine
	epoch uint64
	life  float64 // start of the process, 0 = it does not tell
	// generates: it may be asked by requests that it computes.
	generates bool
}

// parityRound is what one engine made of the probes.
type parityRound struct {
	engine                      string // its name
	compared, differed, skipped int
	chats                       int // of those compared
	first                       *parity.Difference
	why                         reason.Code // nothing was compared
	detail                      string
	failures                    int   // rounds in a row without an answer
	at, again                   int64 // ns: done, to be done again
}

// weight orders rounds by how much they say: a difference, then equality.
func (r *parityRound) weight() int {
	switch {
	case r.differed > 0:
		return 2
	case r.compared > 0:
		return 1
	}
	return 0
}

// engines are the processes that can be asked about a model: its pods, and the
// servers that the configuration names for its tokens. A server that is a pod too is
// asked as one: two rounds of one URL would each take the other for an earlier process.
// One that does not tell its model is none: it may serve another, whose ids would speak
// against ours. untold is how many of those there are.
func (c *parityCheck) engines(set *pod.Set, model string) (all map[asked]bool, untold int) {
	all = map[asked]bool{}
	pods := map[string]bool{}
	generates := c.tokens.generates(model)
	for _, p := range set.Pods {
		if p.Target == "" || p.Spec.Draining {
			continue
		}
		if p.Spec.Model == "" {
			untold++
		}
		if p.Spec.Model != model {
			continue
		}
		e := asked{name: p.Spec.Name, url: "http://" + p.Target, is: p.Spec.Engine, epoch: p.Epoch, generates: generates}
		if s := c.fleet.Telemetry.Get(p.ID).Sample; s != nil && s.ProcessStart.Known {
			e.life = s.ProcessStart.V
		}
		all[e], pods[e.url] = true, true
	}
	for _, url := range c.tokens.servers(model) {
		if !pods[strings.TrimRight(url, "/")] {
			all[asked{name: pod.MaskURL(url), url: url}] = true
		}
	}
	return all, untold
}

// round puts every probe to an engine and compares.
func (c *parityCheck) round(ctx context.Context, m *modelsource.Model, model string, e asked) *parityRound {
	r := &parityRound{why: reason.ParityNobody, detail: "it offers no render and no /tokenize endpoint"}
	clients := c.clients(e)
	for _, p := range parity.Probes() {
		text := tokenizer.Text{Model: model, Shape: p.Shape, Body: p.Body}
		ours, err := m.Encode(ctx, text)
		if err != nil || slices.Contains(ours.Doubts, string(chat.DateInPrompt)) {
			r.skipped++ // not claimed either
			continue
		}
		theirs, err := c.ask(ctx, knowing(clients, m, p.Shape), text)
		switch {
		case ctx.Err() != nil:
			return r
		case err != nil && gravity(err) < 2:
			r.skipped++
			continue
		case err != nil:
			// What was compared until then does not count: an engine that fails half
			// way is asked again soon, and from the start.
			return &parityRound{why: reason.ParityFailing, detail: err.Error()}
		}
		r.compared++
		if p.Shape.IsChat() {
			r.chats++
		}
		if d := parity.Compare(p.Name, ours.IDs, theirs); d != nil {
			if r.differed++; r.first == nil {
				r.first = d
			}
		}
		select {
		case <-ctx.Done():
			return r
		case <-time.After(c.jitter()):
		}
	}
	return r
}

// clients are the ways to ask an engine, best first: what it computes, then what its
// own code makes of a whole request, then what it makes of the text.
func (c *parityCheck) clients(e asked) (list []*feed.RemoteTokenizer) {
	one := func(string) []feed.TokenizerEndpoint { return []feed.TokenizerEndpoint{{URL: e.url, Engine: e.is}} }
	if e.generates {
		list = append(list, feed.NewGenerateClient(c.http, one))
	}
	if e.is != pod.EngineSGLang { // its engines have no render interface
		list = append(list, feed.NewRenderClient(c.http, one))
	}
	return append(list, feed.NewTokenizeClient(c.http, one))
}

// knowing are the ways by which an engine tells what it computes for a request of a shape:
// of a Harmony chat its /tokenize does not, and vLLM, which makes them, has another one.
func knowing(clients []*feed.RemoteTokenizer, m *modelsource.Model, shape tokenizer.Shape) []*feed.RemoteTokenizer {
	if !m.Identity.TokenizeDiffers || !shape.IsChat() {
		return clients
	}
	return slices.DeleteFunc(slices.Clone(clients), func(x *feed.RemoteTokenizer) bool { return x.Name() == byTokenize })
}

// errDoubtful is of ids that the engine's own interface may not have right.
var errDoubtful = errors.New("the endpoint does not take all of the request")

// ask asks in order until one answers. One that hangs or fails does not keep the
// next from it. Of the errors it is the one that says most: that of a failure, else
// that the request is refused, else that nobody offers an answer.
func (c *parityCheck) ask(ctx context.Context, clients []*feed.RemoteTokenizer, t tokenizer.Text) ([]uint32, error) {
	var worst error
	for _, x := range clients {
		ids, err := c.askOne(ctx, x, t)
		if err == nil || ctx.Err() != nil {
			return ids, err
		}
		if worst == nil || gravity(err) > gravity(worst) {
			worst = err
		}
	}
	return nil, worst
}

// gravity orders errors by how much they say of an engine.
func gravity(err error) int {
	switch {
	case errors.Is(err, feed.ErrNotOffered), errors.Is(err, tokenizer.ErrShape):
		return 0
	case errors.Is(err, feed.ErrRefused), errors.Is(err, errDoubtful):
		return 1
	}
	return 2
}

func (c *parityCheck) askOne(ctx context.Context, x *feed.RemoteTokenizer, t tokenizer.Text) ([]uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, c.pauses.deadline)
	defer cancel()
	got, err := x.Tokenize(ctx, t)
	if err == nil && got.Status != tokenizer.Exact {
		err = errDoubtful
	}
	return got.IDs, err
}
