package serve

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/core/view"
)

// providerState is what happened to one provider of one model, for display. Safe for
// concurrent use.
type providerState struct {
	provider tokenizer.Provider

	mu     sync.Mutex
	tells  uint64
	fails  map[reason.Code]uint64
	last   reason.Code // of the latest prompt; "" = it was told
	detail string      // of the last failure
}

// state is the one of a model's provider, kept as long as the provider is the same.
// mu is held.
func (t *tokens) state(model string, p tokenizer.Provider) *providerState {
	for _, s := range t.states[model] {
		if s.provider == p {
			return s
		}
	}
	return &providerState{provider: p, fails: map[reason.Code]uint64{}}
}

func stateOf(list []*providerState, name string) *providerState {
	i := slices.IndexFunc(list, func(s *providerState) bool { return s.provider.Name() == name })
	return list[i] // the chain has no other providers
}

func (s *providerState) told() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tells++
	s.last = ""
}

// failed counts a failure and reports whether it is the first of its reason.
func (s *providerState) failed(why reason.Code, err error) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails[why]++
	s.last, s.detail = why, err.Error()
	return s.fails[why] == 1
}

// snapshot is the state of all models, by name.
func (t *tokens) snapshot() []view.TokenizerState {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := []view.TokenizerState{}
	for model, states := range t.states {
		x := view.TokenizerState{Model: modelLabel(&Model{Name: model}), Providers: []view.ProviderState{}}
		for _, s := range states {
			p := s.snapshot()
			if p.Name == byNative && t.parity != nil {
				p.Parity = t.parity(model)
			}
			x.Providers = append(x.Providers, p)
		}
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b view.TokenizerState) int { return strings.Compare(a.Model, b.Model) })
	return list
}

func (s *providerState) snapshot() view.ProviderState {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := view.ProviderState{Name: s.provider.Name(), State: "ready", Told: s.tells, Failed: map[string]uint64{}}
	for _, why := range slices.Sorted(maps.Keys(s.fails)) {
		x.Failed[string(why)] = s.fails[why]
	}
	if n, ok := s.provider.(*nativeTokenizer); ok {
		n.describe(&x)
		return x
	}
	switch {
	case s.last != "":
		x.State, x.Why, x.Detail = "failing", string(s.last), s.detail
	case s.tells == 0:
		x.State = "untried"
	}
	return x
}

// nativeFiles are those that a model's native tokenizer was made of, nil when unknown.
func nativeFiles(list []view.TokenizerState, model string) *view.TokenizerFiles {
	for i := range list {
		for j := range list[i].Providers {
			if p := &list[i].Providers[j]; list[i].Model == model && p.Name == byNative {
				return p.Files
			}
		}
	}
	return nil
}

// describe fills in how far the files are.
func (n *nativeTokenizer) describe(x *view.ProviderState) {
	s := n.state.Load()
	if s.watcher == nil {
		x.State, x.Why, x.Detail = "unloadable", string(s.why), s.detail
		if s.why == reason.Loading {
			x.State = "loading"
		}
		return
	}
	m := s.watcher.Current()
	if detail := against[m.Standing()]; detail != "" {
		x.State, x.Why, x.Detail = "refuted", string(reason.Refuted), detail
	}
	id := m.Identity
	x.Files = &view.TokenizerFiles{
		Source: id.Name, Commit: id.Commit, Vocabulary: id.Vocabulary.Name, SHA256: id.Vocabulary.SHA256, Digest: id.Digest,
		Split: id.Split, Template: id.Template, NoChat: id.NoChat, Doubt: id.Doubt,
	}
}
