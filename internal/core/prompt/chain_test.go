package prompt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
			got := chain.Tokens(t.Context(), parse(t, body), "base", []byte(body), nil)
			res, from, why := got.Result, got.Provider, got.Why
			if from != c.provider || why != c.why || !slices.Equal(falls, c.falls) {
				t.Errorf("from %q why %q fallbacks %q", from, why, falls)
			}
			if len(got.Tried) != len(c.falls) {
				t.Errorf("tried %v", got.Tried)
			}
			if (why == "") != slices.Equal(res.IDs, []uint32{7, 8}) {
				t.Errorf("ids %v", res.IDs)
			}
		})
	}
}

// TestChainSkipsTheMark: Python skips the mark in front of UTF-8, and providers see
// a body without.
func TestChainSkipsTheMark(t *testing.T) {
	chain := prompt.Chain{Links: []prompt.Link{{Provider: works}}}
	marked := "\xef\xbb\xbf" + body
	if a := chain.Tokens(t.Context(), parse(t, marked), "base", []byte(marked), nil); a.Why != "" {
		t.Errorf("%+v", a)
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
	if got := chain.Tokens(ctx, parse(t, body), "base", []byte(body), nil); got.Why != reason.TokenizeSlow || asked != 0 {
		t.Errorf("why %q, %d providers asked", got.Why, asked)
	}
}

func TestChainNeedsNoProviderForIDs(t *testing.T) {
	chain := prompt.Chain{Links: []prompt.Link{{Provider: fails}}, Fallback: func(string, reason.Code, error) {
		t.Error("a provider was asked")
	}}
	for b, further := range map[string][][]uint32{
		`{"model":"m","prompt":[1,2]}`:             nil,
		`{"model":"m","prompt":[[1,2],[3],[4,5]]}`: {{3}, {4, 5}},
	} {
		got := chain.Tokens(t.Context(), parse(t, b), "base", []byte(b), nil)
		res, from, why := got.Result, got.Provider, got.Why
		if !slices.Equal(res.IDs, []uint32{1, 2}) || !slices.EqualFunc(res.Further, further, slices.Equal) || res.Status != tokenizer.Exact || res.Doubtful || res.Cut >= 0 || from != prompt.InBody || why != "" {
			t.Errorf("%s: %+v %q %q", b, res, from, why)
		}
	}
	b := `{"model":"m","prompt":[1],"extra_key":"x"}`
	if got := chain.Tokens(t.Context(), parse(t, b), "base", []byte(b), nil); got.Why != reason.PrivateCache || got.IDs != nil {
		t.Errorf("%+v", got)
	}
}

// TestChainWantsEveryPrompt: a provider that tells the ids of another number of prompts
// than the request has, or of none of a prompt, is passed over.
func TestChainWantsEveryPrompt(t *testing.T) {
	const two = `{"model":"m","prompt":["a","b"]}`
	all := [][]uint32{{7}, {8, 9}}
	for name, c := range map[string]struct {
		gives [][]uint32
		asked string
		why   reason.Code
	}{
		"all":           {all, two, ""},
		"the first":     {all[:1], two, reason.TokenizeFailed},
		"one too many":  {append(all, all[0]), two, reason.TokenizeFailed},
		"one of no ids": {[][]uint32{{7}, {}}, two, reason.TokenizeFailed},
		"two for one":   {all, `{"model":"m","prompt":"a"}`, reason.TokenizeFailed},
	} {
		chain := prompt.Chain{Links: []prompt.Link{{Provider: provider{"gives", func(context.Context, tokenizer.Text) (tokenizer.Result, error) {
			return tokenizer.Result{IDs: c.gives[0], Further: c.gives[1:], Status: tokenizer.Exact, Cut: -1}, nil
		}}}}}
		got := chain.Tokens(t.Context(), parse(t, c.asked), "base", []byte(c.asked), nil)
		if got.Why != c.why || (got.Why == "") != slices.EqualFunc(got.Further, all[1:], slices.Equal) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The reason of a chain is the last that says something of the request: that a
// provider is not there says less than why another one could not tell.
func TestChainTellsWhy(t *testing.T) {
	missing, bypassed := errors.New("no such endpoint"), errors.New("not rendered from a template")
	failing := func(name string, err error) prompt.Link {
		return prompt.Link{Provider: provider{name, func(context.Context, tokenizer.Text) (tokenizer.Result, error) { return tokenizer.Result{}, err }}}
	}
	chain := prompt.Chain{
		Links: []prompt.Link{failing("native", bypassed), failing("render", missing), failing("tokenize", missing)},
		Why: func(err error) (reason.Code, string) {
			switch err {
			case missing:
				return reason.NoTokenizer, ""
			case bypassed:
				return reason.TemplateUnused, err.Error()
			}
			return "", ""
		},
	}
	got := chain.Tokens(t.Context(), parse(t, body), "base", []byte(body), nil)
	want := []prompt.Attempt{{"native", reason.TemplateUnused, bypassed.Error()}, {"render", reason.NoTokenizer, ""}, {"tokenize", reason.NoTokenizer, ""}}
	if got.Why != reason.TemplateUnused || !slices.Equal(got.Tried, want) || got.Provider != "" {
		t.Errorf("%+v", got)
	}
}

// Only a provider that computes needs a processor, and without one in time the next
// is asked.
func TestChainEnters(t *testing.T) {
	entered, left, free := 0, 0, true
	enter := func(context.Context) (func(), bool) {
		entered++
		return func() { left++ }, free
	}
	chain := prompt.Chain{Links: []prompt.Link{{Provider: works, Computes: true}, {Provider: fails}}}
	if got := chain.Tokens(t.Context(), parse(t, body), "base", []byte(body), enter); got.Provider != "works" || entered != 1 || left != 1 {
		t.Errorf("%+v, entered %d, left %d", got, entered, left)
	}
	chain.Links[0], chain.Links[1] = chain.Links[1], chain.Links[0]
	free = false
	if got := chain.Tokens(t.Context(), parse(t, body), "base", []byte(body), enter); got.Why == "" || entered != 2 || left != 1 {
		t.Errorf("%+v, entered %d, left %d", got, entered, left)
	}
}

// A provider that is configured to leave chats alone is still asked for completions.
func TestChainChatsElsewhere(t *testing.T) {
	chain := prompt.Chain{Links: []prompt.Link{{Provider: works, ChatsElsewhere: reason.TemplateUnused}}}
	if got := chain.Tokens(t.Context(), parse(t, body), "base", []byte(body), nil); got.Provider != "works" {
		t.Errorf("completion: %+v", got)
	}
	b := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	r, _ := prompt.Parse("/v1/chat/completions", "", []byte(b), prompt.Limits{})
	if got := chain.Tokens(t.Context(), r, "base", []byte(b), nil); got.Why != reason.TemplateUnused || got.IDs != nil {
		t.Errorf("chat: %+v", got)
	}
}

// TestChainSees: about images it is asked first that sees them, and text up to the
// first is what the others know.
func TestChainSees(t *testing.T) {
	gives := func(name string, cut int) prompt.Link {
		return prompt.Link{Provider: provider{name, func(_ context.Context, x tokenizer.Text) (tokenizer.Result, error) {
			res := tokenizer.Result{IDs: []uint32{1, 2}, Status: tokenizer.Exact, Cut: cut}
			if name == "render" && x.Media {
				res.Items = []tokenizer.Item{{Name: "a", Offset: 1, Length: 1}}
			}
			return res, nil
		}}}
	}
	native, sees, silent := gives("native", 1), gives("render", -1), gives("silent", -1)
	sees.Sees, silent.Sees = true, true
	blind := prompt.Link{Provider: provider{"render", fails.f}, Sees: true}
	const text, image = `"hi"`, `[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]`
	for name, c := range map[string]struct {
		links            []prompt.Link
		content, by, log string
		cut              int
	}{
		"text":               {[]prompt.Link{native, sees}, text, "native", "", 1},
		"an image":           {[]prompt.Link{native, sees}, image, "render", "", -1},
		"nobody sees":        {[]prompt.Link{native}, image, "native", "", 1},
		"who sees fails":     {[]prompt.Link{native, blind}, image, "native", "render", 1},
		"who sees is silent": {[]prompt.Link{native, silent}, image, "native", "silent", 1},
		"it sees one of two": {[]prompt.Link{native, sees}, strings.Replace(image, "}]", "},"+image[1:], 1), "native", "render", 1},
		"all are silent":     {[]prompt.Link{silent}, image, "", "silent", -1},
		"of text none need":  {[]prompt.Link{silent}, text, "silent", "", -1},
		"text goes first":    {[]prompt.Link{sees, native}, text, "render", "", -1},
	} {
		r, problem := prompt.Parse("/v1/chat/completions", "", []byte(`{"model":"m","messages":[{"role":"user","content":`+c.content+`}]}`), prompt.Limits{})
		if problem != nil {
			t.Fatal(problem)
		}
		chain := prompt.Chain{Links: c.links}
		a := chain.Tokens(t.Context(), r, "base", []byte("{}"), nil)
		var tried string
		for _, x := range a.Tried {
			tried += x.Provider
		}
		if a.Provider != c.by || tried != c.log || a.Cut != c.cut {
			t.Errorf("%s: by %q behind %q, cut %d", name, a.Provider, tried, a.Cut)
		}
	}
}

// What a provider has no form for, and what went wrong at it, stands beside the reason.
func TestChainTellsDetails(t *testing.T) {
	for want, err := range map[prompt.Attempt]error{
		{Provider: "p", Why: reason.Shape, Detail: "request has parts that are no text"}:            fmt.Errorf("tokenize at http://e: %w", tokenizer.ErrMedia),
		{Provider: "p", Why: reason.Shape, Detail: "request has more prompts than are asked about"}: tokenizer.ErrManyPrompts,
		{Provider: "p", Why: reason.TokenizeFailed, Detail: "tokenize at http://e: refused"}:        errors.New("tokenize at http://e: refused"),
		{Provider: "p", Why: reason.TokenizeSlow}:                                                   fmt.Errorf("at http://e: %w", context.DeadlineExceeded),
	} {
		p := provider{"p", func(context.Context, tokenizer.Text) (tokenizer.Result, error) { return tokenizer.Result{}, err }}
		chain := prompt.Chain{Links: []prompt.Link{{Provider: p}}}
		if got := chain.Tokens(t.Context(), parse(t, body), "base", []byte(body), nil); !slices.Equal(got.Tried, []prompt.Attempt{want}) {
			t.Errorf("%v, want %v", got.Tried, want)
		}
	}
}

// TestChainAsksRefutedLast: ids that are known to be others than the engine's are used
// only when nobody else tells, and then there is time left to make them.
func TestChainAsksRefutedLast(t *testing.T) {
	against := "a probe differs"
	native := provider{"native", func(context.Context, tokenizer.Text) (tokenizer.Result, error) {
		return tokenizer.Result{IDs: []uint32{1}, Status: tokenizer.Unverified, Cut: -1}, nil
	}}
	refuted := prompt.Link{Provider: native, Refuted: func() string { return against }, Grace: 200 * time.Millisecond}
	for name, c := range map[string]struct {
		links    []prompt.Link
		provider string
		tried    []prompt.Attempt
	}{
		"another tells":    {[]prompt.Link{refuted, {Provider: works}}, "works", []prompt.Attempt{{"native", reason.Refuted, against}}},
		"nobody else does": {[]prompt.Link{refuted, {Provider: fails}}, "native", []prompt.Attempt{{"native", reason.Refuted, against}, {"fails", reason.TokenizeFailed, "unknown normalizer"}}},
		"another hangs":    {[]prompt.Link{refuted, {Provider: stuck}}, "native", []prompt.Attempt{{"native", reason.Refuted, against}, {"stuck", reason.TokenizeSlow, ""}}},
		"nobody else is":   {[]prompt.Link{refuted}, "native", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			falls := 0
			chain := prompt.Chain{Links: c.links, Fallback: func(string, reason.Code, error) { falls++ }}
			got := chain.Tokens(t.Context(), parse(t, body), "base", []byte(body), nil)
			if got.Provider != c.provider || got.Why != "" || !slices.Equal(got.Tried, c.tried) || falls != len(c.tried) {
				t.Errorf("by %q, why %q, tried %v, %d fallbacks", got.Provider, got.Why, got.Tried, falls)
			}
		})
	}
}

// TestChainAsksAgain: nothing speaks against a provider any more.
func TestChainAsksAgain(t *testing.T) {
	against := "a probe differs"
	chain := prompt.Chain{Links: []prompt.Link{{Provider: works, Refuted: func() string { return against }}, {Provider: fails}}}
	chain.Tokens(t.Context(), parse(t, body), "base", []byte(body), nil)
	against = ""
	if got := chain.Tokens(t.Context(), parse(t, body), "base", []byte(body), nil); got.Provider != "works" || len(got.Tried) != 0 {
		t.Errorf("by %q, tried %v", got.Provider, got.Tried)
	}
}
