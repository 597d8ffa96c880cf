package serve

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/modelsource"
)

// tokens builds, for each model, the chain of providers that find its prompts'
// token ids, and owns what they run. chain and close are called by one goroutine at
// a time; what they return may be used from any.
type tokens struct {
	render, tokenize *feed.RemoteTokenizer
	limits           Limits
	met              *metrics
	log              *slog.Logger
	turn             chan struct{} // see nativeTokenizer
	rules            func() *rules
	set              func() *pod.Set

	parity func(model string) *view.Parity // of native ids, set before the first snapshot; nil = nobody compares

	mu      sync.Mutex
	natives map[string]*nativeTokenizer // by model
	states  map[string][]*providerState // by model, in order
}

// newTokens asks the endpoints that rules names at the time of each prompt.
func newTokens(c *http.Client, set func() *pod.Set, rules func() *rules, limits Limits, met *metrics, log *slog.Logger) *tokens {
	of := func(urls func(*Model) []string) func(string) []feed.TokenizerEndpoint {
		return func(base string) []feed.TokenizerEndpoint {
			if m := rules().models.Get(base); m != nil && len(urls(m)) > 0 {
				return configured(urls(m))
			}
			return ofPods(set(), base)
		}
	}
	// SGLang's engines have no render interface (0.5.23 answers 404); its renderer
	// is a server of its own, and configured.
	renders := of(func(m *Model) []string { return m.Render.URLs })
	return &tokens{
		render: feed.NewRenderClient(c, func(base string) []feed.TokenizerEndpoint {
			return slices.DeleteFunc(renders(base), func(e feed.TokenizerEndpoint) bool { return e.Engine == pod.EngineSGLang })
		}),
		tokenize: feed.NewTokenizeClient(c, of(func(m *Model) []string { return m.Tokenize.URLs })),
		limits:   limits, rules: rules, set: set, met: met, log: log, turn: make(chan struct{}, 1),
		natives: map[string]*nativeTokenizer{}, states: map[string][]*providerState{},
	}
}

// servers are the URLs that the configuration names for a model's tokens.
func (t *tokens) servers(base string) []string {
	if m := t.rules().models.Get(base); m != nil {
		return slices.Compact(slices.Sorted(slices.Values(slices.Concat(m.Render.URLs, m.Tokenize.URLs))))
	}
	return nil
}

// generates reports whether a model's pods may be asked to compute probes.
func (t *tokens) generates(base string) bool {
	m := t.rules().models.Get(base)
	return m != nil && m.Tokenizer.Generate == "on"
}

func configured(urls []string) []feed.TokenizerEndpoint {
	list := make([]feed.TokenizerEndpoint, len(urls))
	for i, u := range urls {
		list[i].URL = u
	}
	return list
}

// ofPods names the engines that serve a model. Without a model any engine's ids
// would be a guess, unless all pods serve the same one.
func ofPods(set *pod.Set, base string) (list []feed.TokenizerEndpoint) {
	for _, p := range set.Pods {
		switch {
		case p.Target == "" || p.Spec.Draining:
		case base == "" && p.Spec.Model != set.Pods[0].Spec.Model:
			return nil
		case base != "" && p.Spec.Model != "" && p.Spec.Model != base:
		default:
			list = append(list, feed.TokenizerEndpoint{URL: "http://" + p.Target, Engine: p.Spec.Engine, Release: p.Spec.Release})
		}
	}
	return list
}

// chain is the one of a model; the zero Model stands for those not configured. What
// it runs goes on until keep leaves the model out.
func (t *tokens) chain(m *Model) *prompt.Chain {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &prompt.Chain{Why: whyUntold}
	var states []*providerState
	for _, name := range m.Tokenizer.order() {
		if name == byBytes {
			c.Bytes = true
			continue
		}
		if l, ok := t.link(m, name); ok {
			s := t.state(m.Name, l.Provider)
			c.Links, states = append(c.Links, l), append(states, s)
		}
	}
	t.states[m.Name] = states
	label := modelLabel(m)
	c.Told = func(provider string) { stateOf(states, provider).told() }
	c.Fallback = func(provider string, why reason.Code, err error) {
		t.met.untokenized.WithLabelValues(label, provider, string(why)).Inc()
		if s := stateOf(states, provider); s.failed(why, err) && why != reason.NoTokenizer && why != reason.Refuted { // parity logs the latter
			t.log.Warn("a tokenizer could not tell; the next is asked", "model", label, "provider", provider, "reason", why, "err", err)
		}
	}
	return c
}

// link is a model's provider of this name; ok is false when it has none. mu is held.
func (t *tokens) link(m *Model, name string) (l prompt.Link, ok bool) {
	within := func(own, general time.Duration) time.Duration {
		if own > 0 {
			return min(own, t.limits.PickDeadline)
		}
		return general
	}
	chats := m.Tokenizer.Chat
	switch name {
	case byNative:
		if !m.Tokenizer.Loads() {
			return l, false
		}
		n := t.native(m)
		l = prompt.Link{Provider: n, Deadline: t.limits.TokenizeTimeout, Computes: true, Refuted: n.refuted, Grace: t.limits.PickDeadline / 2}
		if chats == byRender || chats == byTokenize {
			l.ChatsElsewhere = reason.TemplateUnused
		}
	case byRender:
		l = prompt.Link{Provider: t.render, Deadline: within(m.Render.Timeout, t.limits.RenderTimeout), Sees: true}
		if chats == byTokenize {
			l.ChatsElsewhere = reason.TemplateUnused
		}
	case byTokenize:
		l = prompt.Link{Provider: t.tokenize, Deadline: within(m.Tokenize.Timeout, t.limits.TokenizeTimeout)}
		if chats != byTokenize && m.Tokenizer.Loads() {
			l.ChatsDiffer = t.native(m).chatsDiffer
		}
	}
	return l, true
}

// native is the tokenizer of a model, kept as long as its section says the same.
func (t *tokens) native(m *Model) *nativeTokenizer {
	old := t.natives[m.Name]
	if old != nil && old.config.same(&m.Tokenizer) {
		return old
	}
	if old != nil {
		old.Close()
	}
	n := startNative(m.Name, m.Tokenizer, hub, t.engineOf(m), t.releaseOf(m), t.turn, t.log)
	t.natives[m.Name] = n
	return n
}

// engineOf says whose preparation of chats is a model's: the configured one, else that
// of its pods. While they differ or are not known it is vLLM's.
func (t *tokens) engineOf(m *Model) func() chat.Engine {
	is := func(e chat.Engine) func() chat.Engine { return func() chat.Engine { return e } }
	switch m.Tokenizer.Engine {
	case "vllm":
		return is(chat.VLLM)
	case "sglang":
		return is(chat.SGLang)
	}
	name := m.Name
	return func() chat.Engine {
		pods := slices.DeleteFunc(ofPods(t.set(), name), func(e feed.TokenizerEndpoint) bool { return e.Engine == pod.EngineUnknown })
		if len(pods) == 0 || slices.ContainsFunc(pods, func(e feed.TokenizerEndpoint) bool { return e.Engine != pod.EngineSGLang }) {
			return chat.VLLM
		}
		return chat.SGLang
	}
}

// releaseOf says of which release the engines of a model's pods are, as far as prompts
// differ by it: the zero Release while one does not tell, or they differ.
func (t *tokens) releaseOf(m *Model) func() chat.Release {
	name := m.Name
	return func() (all chat.Release) {
		for i, e := range ofPods(t.set(), name) {
			r := chat.ParseRelease(e.Release)
			if i > 0 && r != all || r == (chat.Release{}) {
				return chat.Release{}
			}
			all = r
		}
		return all
	}
}

// hub is where models are looked for, by the variables that other tools read too.
func hub() (*modelsource.Settings, error) { return modelsource.FromEnv(os.Getenv) }

// same reports whether the files and what is made of them are.
func (t *Tokenizer) same(o *Tokenizer) bool {
	a, b := *t, *o
	a.Order, b.Order, a.Native, b.Native, a.Generate, b.Generate = nil, nil, "", "", "", ""
	return reflect.DeepEqual(a, b)
}

// keep ends what runs for models that are not among these, or need none of it now.
func (t *tokens) keep(models Models) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, n := range t.natives {
		if m := models.Get(name); m == nil || !m.Tokenizer.Loads() {
			n.Close()
			delete(t.natives, name)
		}
	}
	for name := range t.states {
		if name != "" && !models.has(name) {
			delete(t.states, name)
		}
	}
}

// loaded are the native tokenizers that are there, by model.
func (t *tokens) loaded() map[string]*modelsource.Model {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]*modelsource.Model{}
	for name, n := range t.natives {
		if m := n.current(); m != nil {
			all[name] = m
		}
	}
	return all
}

// settle waits until each native tokenizer is loaded or has failed to.
func (t *tokens) settle(patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.natives {
		n.wait(ctx)
	}
}

// close ends everything.
func (t *tokens) close() {
	t.keep(nil)
	t.render.Close()
	t.tokenize.Close()
}

// modelLabel is the label of a model's series.
func modelLabel(m *Model) string {
	if m.Name == "" {
		return otherModel
	}
	return m.Name
}
