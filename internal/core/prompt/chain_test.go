package prompt_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// provider is a Provider made of a function.
type provider struct {
	name string
	f    func(context.Context, tokenizer.Text) (tokenizer.Result, error)
}

func (p provider) Name() string { return p.name }

func (p provider) Tokenize(ctx context.Context, t tokenizer.Text) (tokenizer.Result, error) {
	return p.f(ctx, t)
}

var (
	fails = provider{"fails", func(context.Context, tokenizer.Text) (tokenizer.Result, error) {
		return tokenizer.Result{}, errors.New("unknown normalizer")
	}}
	stuck = provider{"stuck", func(ctx context.Context, _ tokenizer.Text) (tokenizer.Result, error) {
		<-ctx.Done()
		return tokenizer.Result{}, ctx.Err()
	}}
	empty = provider{"empty", func(context.Context, tokenizer.Text) (tokenizer.Result, error) {
		return tokenizer.Result{Status: tokenizer.Exact}, nil
	}}
	works = provider{"works", func(_ context.Context, t tokenizer.Text) (tokenizer.Result, error) {
		if t.Model != "base" || t.Shape != tokenizer.Completion || string(t.Body) != body {
			return tokenizer.Result{}, errors.New("wrong text")
		}
		return tokenizer.Result{IDs: []uint32{7, 8}, Status: tokenizer.Exact, Cut: -1}, nil
	}}
)

const body = `{"model":"sql","prompt":"hi"}`

func parse(t *testing.T, b string) *prompt.Request {
	t.Helper()
	r, p := prompt.Parse(completions, "", []byte(b), prompt.Limits{})
	if p != nil {
		t.Fatal(p)
	}
	return r
}

func TestChain(t *testing.T) {
	links := func(ps ...provider) (list []prompt.Link) {
		for _, p := range ps {
			l := prompt.Link{Provider: p}
			if p.name == "stuck" {
				l.Deadline = time.Millisecond
			}
			list = append(list, l)
		}
		return list
	}
	for name, c := range map[string]struct {
		links    []prompt.Link
		provider string
		why      reason.Code
		falls    []reason.Code
	}{
		"none configured":         {why: reason.NoTokenizer},
		"first works":             {links: links(works, fails), provider: "works"},
		"second works":            {links: links(fails, works), provider: "works", falls: []reason.Code{reason.TokenizeFailed}},
		"EP-30 stuck, then works": {links: links(stuck, works), provider: "works", falls: []reason.Code{reason.TokenizeSlow}},
		"gives nothing":           {links: links(empty), why: reason.TokenizeFailed, falls: []reason.Code{reason.TokenizeFailed}},
		"all fail":                {links: links(stuck, fails), why: reason.TokenizeFailed, falls: []reason.Code{reason.TokenizeSlow, reason.TokenizeFailed}},
	} {
		t.Run(name, func(t *testing.T) {
			var falls []reason.Code
			chain := prompt.Chain{Links: c.links, Fallback: func(_ string, why reason.Code, err error) {
				if err == nil {
					t.Error("fallback without an error")
				}
				falls = append(falls, why)
			}}
			res, from, why := chain.Tokens(t.Context(), parse(t, body), "base", []byte(body))
			if from != c.provider || why != c.why || !slices.Equal(falls, c.falls) {
				t.Errorf("from %q why %q fallbacks %q", from, why, falls)
			}
			if (why == "") != slices.Equal(res.IDs, []uint32{7, 8}) {
				t.Errorf("ids %v", res.IDs)
			}
		})
	}
}

func TestChainStopsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	asked := 0
	never := provider{"never", func(context.Context, tokenizer.Text) (tokenizer.Result, error) {
		asked++
		return tokenizer.Result{}, nil
	}}
	chain := prompt.Chain{Links: []prompt.Link{{Provider: never}, {Provider: never}}}
	if _, _, why := chain.Tokens(ctx, parse(t, body), "base", []byte(body)); why != reason.TokenizeSlow || asked != 0 {
		t.Errorf("why %q, %d providers asked", why, asked)
	}
}

func TestChainNeedsNoProviderForIDs(t *testing.T) {
	chain := prompt.Chain{Links: []prompt.Link{{Provider: fails}}, Fallback: func(string, reason.Code, error) {
		t.Error("a provider was asked")
	}}
	for b, status := range map[string]tokenizer.Status{
		`{"model":"m","prompt":[1,2]}`:       tokenizer.Exact,
		`{"model":"m","prompt":[[1,2],[3]]}`: tokenizer.Unverified,
	} {
		res, from, why := chain.Tokens(t.Context(), parse(t, b), "base", []byte(b))
		if !slices.Equal(res.IDs, []uint32{1, 2}) || res.Status != status || res.Cut >= 0 || from != prompt.InBody || why != "" {
			t.Errorf("%s: %+v %q %q", b, res, from, why)
		}
	}
	b := `{"model":"m","prompt":[1],"extra_key":"x"}`
	if res, _, why := chain.Tokens(t.Context(), parse(t, b), "base", []byte(b)); why != reason.PrivateCache || res.IDs != nil {
		t.Errorf("%+v %q", res, why)
	}
}
