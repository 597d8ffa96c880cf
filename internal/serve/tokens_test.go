package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/modelsource"
	"github.com/eppctl/eppctl/internal/testdata"
)

// modelFolder is a folder with the files of the captures' model, of which change
// may replace some.
func modelFolder(t *testing.T, change map[string]func(string) string) string {
	t.Helper()
	from, to := filepath.Join(testdata.Dirs(t, "engines")[0], "models", "tiny-llama"), t.TempDir()
	for _, name := range []string{"config.json", "tokenizer.json", "tokenizer_config.json"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if f := change[name]; f != nil {
			if after := f(string(b)); after == string(b) {
				t.Fatalf("%s is as before", name)
			} else {
				b = []byte(after)
			}
		}
		if err := os.WriteFile(filepath.Join(to, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func swap(old, new string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, new, 1) }
}

// engineServer answers as an engine's HTTP server would: by path, a status or ids.
type engineServer struct {
	url   string
	asked map[string]*atomic.Int32
	model atomic.Pointer[string] // of the last request
}

func newEngineServer(t *testing.T, replies map[string]string) *engineServer {
	t.Helper()
	e := &engineServer{asked: map[string]*atomic.Int32{}}
	hang := make(chan struct{})
	for path := range replies {
		e.asked[path] = new(atomic.Int32)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Model string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		e.model.Store(&body.Model)
		reply, known := replies[r.URL.Path]
		if known {
			e.asked[r.URL.Path].Add(1)
		}
		switch reply {
		case "":
			http.NotFound(w, r)
		case "403":
			http.Error(w, `{"error":{"type":"PermissionDeniedError"}}`, http.StatusForbidden)
		case "hang":
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		default:
			_, _ = io.WriteString(w, reply)
		}
	}))
	t.Cleanup(func() { close(hang); s.Close() })
	e.url = s.URL
	return e
}

const (
	chatRender       = "/v1/chat/completions/render"
	completionRender = "/v1/completions/render"
)

// chainRig is the real chain of one model and what it counted.
type chainRig struct {
	*tokens
	t     *testing.T
	rules *rules
	met   *metrics
	log   bytes.Buffer
}

func newChainRig(t *testing.T, m Model, limits func(*Limits)) *chainRig {
	t.Helper()
	return newChainRigOver(t, pod.NewTable().Snapshot, m, limits)
}

// newChainRigOver is newChainRig with pods.
func newChainRigOver(t *testing.T, pods func() *pod.Set, m Model, limits func(*Limits)) *chainRig {
	t.Helper()
	c, err := LoadConfig("")
	if err != nil {
		t.Fatal(err)
	}
	m.Name = "base"
	c.Models = Models{m}
	c.Limits.PickDeadline, c.Limits.RenderTimeout, c.Limits.TokenizeTimeout = time.Minute, time.Minute, time.Minute
	if limits != nil {
		limits(&c.Limits)
	}
	r := &chainRig{t: t, met: newMetrics()}
	r.tokens = newTokens(nil, pods, func() *rules { return r.rules }, c.Limits, r.met, slog.New(slog.NewTextHandler(&r.log, nil)))
	t.Cleanup(r.close)
	r.rules = newRules(c, r.chain)
	r.settle(time.Minute)
	return r
}

// ask puts one request to the chain.
func (r *chainRig) ask(path, body string) prompt.Answer {
	r.t.Helper()
	req, problem := prompt.Parse(path, "", []byte(body), prompt.Limits{DefaultModel: "base"})
	if problem != nil {
		r.t.Fatal(problem)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), r.limits.PickDeadline)
	defer cancel()
	return r.rules.chain("base").Tokens(ctx, req, "base", []byte(body), nil)
}

func (r *chainRig) counted(provider string, why reason.Code) bool {
	return strings.Contains(scrapePage(r.t, r.met, false), fmt.Sprintf("eppctl_tokenize_failures_total{model=%q,provider=%q,reason=%q} ", "base", provider, string(why)))
}

// tried is who could not tell, and why, as one text.
func tried(a prompt.Answer) string {
	var list []string
	for _, x := range a.Tried {
		list = append(list, x.Provider+" "+string(x.Why))
	}
	return strings.Join(list, ", ")
}

const (
	chatPath, completionPath = "/v1/chat/completions", "/v1/completions"
	hello                    = `{"model":"sql","messages":[{"role":"user","content":"Replica meadow winter."}]}`
	helloText                = `{"model":"sql","prompt":"Replica meadow winter."}`
)

// TestProviders is what each model's files, options and endpoints make of a chat and
// of a completion.
func TestProviders(t *testing.T) {
	whole := modelFolder(t, nil)
	odd := modelFolder(t, map[string]func(string) string{"tokenizer.json": swap(`"normalizer":null`, `"normalizer": {"type": "Martian"}`)})
	harmony := harmonyFolder(t)
	martian := modelFolder(t, map[string]func(string) string{"config.json": func(string) string {
		return `{"model_type":"gpt_oss","architectures":["GptOssForCausalLM"]}`
	}})
	deepseek := modelFolder(t, map[string]func(string) string{"config.json": func(string) string { return `{"architectures":["DeepseekV41ForCausalLM"]}` }})
	byType := func(name string) string {
		return modelFolder(t, map[string]func(string) string{"config.json": func(string) string { return `{"model_type":"` + name + `"}` }})
	}
	mistral := modelFolder(t, nil)
	if err := os.WriteFile(filepath.Join(mistral, "tekken.json"), testdata.Gunzip(t, filepath.Join(testdata.Dirs(t, "tokenizer")[0], "vocab", "tekken_240911.json.gz")), 0o600); err != nil {
		t.Fatal(err)
	}
	offers := map[string]string{chatRender: `{"token_ids":[1]}`, completionRender: `[{"token_ids":[2]}]`, "/tokenize": `{"tokens":[3],"count":1}`}
	only := func(path string) map[string]string { return map[string]string{path: offers[path]} }
	const (
		natively   = "native: "
		noRender   = "render tokenizer-missing"
		noTokenize = "tokenize tokenizer-missing"
		unused     = "native template-not-used"
		broken     = "native tokenizer-unloadable"
	)
	for _, tc := range []struct {
		name             string
		tokenizer        Tokenizer
		replies          map[string]string
		chat, completion string // provider: who could not tell
		why              reason.Code
	}{
		{"native first", Tokenizer{Source: whole}, offers, natively, natively, ""},
		{"no files, render", Tokenizer{}, offers, "render: ", "render: ", ""},
		{"TK-40 render answers 404", Tokenizer{}, only("/tokenize"), "tokenize: " + noRender, "tokenize: " + noRender, ""},
		{"TK-40 render answers 403", Tokenizer{}, map[string]string{chatRender: "403", completionRender: "403", "/tokenize": offers["/tokenize"]},
			"tokenize: " + noRender, "tokenize: " + noRender, ""},
		{"nobody", Tokenizer{}, nil, ": " + noRender + ", " + noTokenize, ": " + noRender + ", " + noTokenize, reason.NoTokenizer},
		{"TK-09 unknown normalizer", Tokenizer{Source: odd}, offers, "render: " + broken, "render: " + broken, ""},
		{"TK-14 another hash", Tokenizer{Source: whole, SHA256: strings.Repeat("0", 64)}, offers, "render: " + broken, "render: " + broken, ""},
		{"no such folder", Tokenizer{Source: "/nowhere"}, only("/tokenize"), "tokenize: " + broken + ", " + noRender, "tokenize: " + broken + ", " + noRender, ""},
		{"TK-35 gpt-oss, no render", Tokenizer{Source: martian}, only("/tokenize"), ": " + unused + ", " + noRender + ", tokenize template-not-used", natively, reason.TemplateUnused},
		{"gpt-oss of another vocabulary, render", Tokenizer{Source: martian}, offers, "render: " + unused, natively, ""},
		{"gpt-oss by template is refused", Tokenizer{Source: martian, Chat: "native"}, offers, "render: " + unused, natively, ""},
		{"gpt-oss by an encoder of ours", Tokenizer{Source: harmony, TimeZone: "UTC"}, offers, natively, natively, ""},
		{"gpt-oss with --tokenizer-mode hf", Tokenizer{Source: harmony, TimeZone: "UTC", Chat: "native"}, nil, natively, natively, ""},
		{"gpt-oss, its date pinned", Tokenizer{Source: harmony, StartDate: "2025-06-28"}, offers, natively, natively, ""},
		{"gpt-oss, time zone not known", Tokenizer{Source: harmony}, offers, "render: native request-not-renderable", natively, ""},
		{"gpt-oss of SGLang", Tokenizer{Source: harmony, TimeZone: "UTC", Engine: "sglang"}, only("/tokenize"), "tokenize: " + unused + ", " + noRender, natively, ""},
		{"gpt-oss, chats by tokenize", Tokenizer{Source: harmony, TimeZone: "UTC", Chat: "tokenize"}, offers, "tokenize: " + unused + ", render template-not-used", natively, ""},
		{"DeepSeek V4.1", Tokenizer{Source: deepseek}, offers, "render: " + unused, natively, ""},
		{"DeepSeek V4.1 with --tokenizer-mode hf", Tokenizer{Source: deepseek, Chat: "native"}, offers, natively, natively, ""},
		{"DeepSeek V4.1, no render", Tokenizer{Source: deepseek}, only("/tokenize"), "tokenize: " + unused + ", " + noRender, natively, ""},
		{"DeepSeek V4.1 by its type, nobody", Tokenizer{Source: byType("deepseek_v41")}, nil, ": " + unused + ", " + noRender + ", " + noTokenize, natively, reason.TemplateUnused},
		{"DeepSeek V4 by an encoder of ours", Tokenizer{Source: byType("deepseek_v4")}, offers, natively, natively, ""},
		{"DeepSeek V3.2 by an encoder of ours", Tokenizer{Source: byType("deepseek_v32")}, offers, natively, natively, ""},
		{"Kimi K3 by its type, no render", Tokenizer{Source: byType("kimi_k3")}, only("/tokenize"), "tokenize: " + unused + ", " + noRender, natively, ""},
		{"Mistral by tekken.json, render", Tokenizer{Source: mistral}, offers, "render: " + unused, natively, ""},
		{"Mistral by tekken.json, nobody", Tokenizer{Source: mistral}, nil, ": " + unused + ", " + noRender + ", " + noTokenize, natively, reason.TemplateUnused},
		{"Mistral with --tokenizer-mode hf", Tokenizer{Source: mistral, Mode: "hf"}, offers, natively, natively, ""},
		{"the engine's mode", Tokenizer{Source: whole, Mode: "deepseek_v41"}, offers, "render: " + unused, natively, ""},
		{"chats by render", Tokenizer{Source: whole, Chat: "render"}, offers, "render: " + unused, natively, ""},
		{"chats by tokenize", Tokenizer{Source: whole, Chat: "tokenize"}, offers, "tokenize: " + unused + ", render template-not-used", natively, ""},
		{"off", Tokenizer{Source: whole, Native: "off"}, offers, "render: ", "render: ", ""},
		{"another order", Tokenizer{Source: whole, Order: []string{"tokenize", "native"}}, offers, "tokenize: ", "tokenize: ", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := newEngineServer(t, tc.replies)
			r := newChainRig(t, Model{Tokenizer: tc.tokenizer, Render: Endpoints{URLs: []string{e.url}}, Tokenize: Endpoints{URLs: []string{e.url}}}, nil)
			for path, want := range map[string]string{chatPath: tc.chat, completionPath: tc.completion} {
				body := hello
				if path == completionPath {
					body = helloText
				}
				a := r.ask(path, body)
				if got := a.Provider + ": " + tried(a); got != want {
					t.Errorf("%s: %q, want %q", path, got, want)
				}
				if a.Provider == "" && a.Why != tc.why || a.Provider != "" && (a.Why != "" || len(a.IDs) == 0) {
					t.Errorf("%s: why %q, %d ids; want %q", path, a.Why, len(a.IDs), tc.why)
				}
				for _, x := range a.Tried {
					if !r.counted(x.Provider, x.Why) && x.Detail != "configured" {
						t.Errorf("%s: %s %s is not counted", path, x.Provider, x.Why)
					}
				}
			}
			if m := e.model.Load(); m != nil && *m != "base" { // TK-44
				t.Errorf("the engine was asked about %q", *m)
			}
		})
	}
}

// TestFormsByProvider: who tells the ids of /v1/messages and /v1/responses, and by
// which endpoint.
func TestFormsByProvider(t *testing.T) {
	whole := modelFolder(t, nil)
	bodies := map[string]string{
		"/v1/messages":  `{"model":"sql","max_tokens":9,"messages":[{"role":"user","content":"Replica meadow winter."}]}`,
		"/v1/responses": `{"model":"sql","input":"Replica meadow winter."}`,
	}
	const ids, tokens = `{"token_ids":[1]}`, `{"tokens":[3],"count":1}`
	for name, tc := range map[string]struct {
		tokenizer Tokenizer
		replies   map[string]string
		want      string // provider: who could not tell
		at        string // the endpoint that told; "" = the form's own
	}{
		"native":           {Tokenizer{Source: whole}, nil, "native: ", "nowhere"},
		"render":           {Tokenizer{}, map[string]string{"/v1/messages/render": ids, "/v1/responses/render": ids, chatRender: ids}, "render: ", ""},
		"render of chats":  {Tokenizer{}, map[string]string{chatRender: ids, "/tokenize": tokens}, "render: ", chatRender},
		"tokenize":         {Tokenizer{}, map[string]string{"/tokenize": tokens}, "tokenize: render tokenizer-missing", "/tokenize"},
		"chats by render":  {Tokenizer{Source: whole, Chat: "render"}, map[string]string{chatRender: ids}, "render: native template-not-used", chatRender},
		"completions only": {Tokenizer{}, map[string]string{completionRender: `[{"token_ids":[2]}]`}, ": render tokenizer-missing, tokenize tokenizer-missing", "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			for path, body := range bodies {
				e := newEngineServer(t, tc.replies)
				r := newChainRig(t, Model{Tokenizer: tc.tokenizer, Render: Endpoints{URLs: []string{e.url}}, Tokenize: Endpoints{URLs: []string{e.url}}}, nil)
				a := r.ask(path, body)
				if got := a.Provider + ": " + tried(a); got != tc.want || (a.Provider == "") != (len(a.IDs) == 0) {
					t.Errorf("%s: %q with %d ids, want %q", path, got, len(a.IDs), tc.want)
				}
				at := cmp.Or(tc.at, path+"/render")
				for asked, n := range e.asked {
					if (asked == at) != (n.Load() == 1) {
						t.Errorf("%s: %s was asked %d times", path, asked, n.Load())
					}
				}
			}
		})
	}
}

// TestEmbeddingsByProvider: texts to embed are nobody's chats, chats are; no renderer
// has a path for either.
func TestEmbeddingsByProvider(t *testing.T) {
	whole := modelFolder(t, nil)
	const text, talk = `{"model":"sql","input":["Replica meadow winter.","sesame"]}`, `{"model":"sql","messages":[{"role":"user","content":"Replica meadow winter."}]}`
	for _, c := range []struct {
		name      string
		tokenizer Tokenizer
		body      string
		want      string // provider: who could not tell
	}{
		{"native", Tokenizer{Source: whole}, text, "native: "},
		{"native chat", Tokenizer{Source: whole}, talk, "native: "},
		{"tokenize", Tokenizer{}, text, "tokenize: render request-not-renderable"},
		{"tokenize chat", Tokenizer{}, talk, "tokenize: render request-not-renderable"},
		{"chats elsewhere", Tokenizer{Source: whole, Chat: "tokenize"}, text, "native: "},
		{"chat elsewhere", Tokenizer{Source: whole, Chat: "tokenize"}, talk, "tokenize: native template-not-used, render template-not-used"},
	} {
		e := newEngineServer(t, map[string]string{"/tokenize": `{"tokens":[3],"count":1}`, chatRender: `{"token_ids":[1]}`, completionRender: `[{"token_ids":[2]}]`})
		r := newChainRig(t, Model{Tokenizer: c.tokenizer, Render: Endpoints{URLs: []string{e.url}}, Tokenize: Endpoints{URLs: []string{e.url}}}, nil)
		a := r.ask("/v1/embeddings", c.body)
		if got := a.Provider + ": " + tried(a); got != c.want || len(a.IDs) == 0 {
			t.Errorf("%s: %q with %d ids, want %q", c.name, got, len(a.IDs), c.want)
		}
	}
}

// TestUnloadableSaysWhy: TK-09. The element that is not understood is named in
// explain's attempt, in the state and in the log, once.
func TestUnloadableSaysWhy(t *testing.T) {
	odd := modelFolder(t, map[string]func(string) string{"tokenizer.json": swap(`"normalizer":null`, `"normalizer": {"type": "Martian"}`)})
	r := newChainRig(t, Model{Tokenizer: Tokenizer{Source: odd}}, nil)
	for range 3 {
		if a := r.ask(completionPath, helloText); !strings.Contains(a.Tried[0].Detail, "Martian") {
			t.Errorf("the attempt says %+v", a.Tried)
		}
	}
	s := providerOf(t, r.snapshot(), "base", "native")
	if s.State != "unloadable" || s.Why != "tokenizer-unloadable" || !strings.Contains(s.Detail, "Martian") || s.Failed["tokenizer-unloadable"] != 3 {
		t.Errorf("state %+v", s)
	}
	r.close() // ends who logs
	if n := strings.Count(r.log.String(), "cannot be loaded"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, r.log.String())
	}
}

func providerOf(t *testing.T, list []view.TokenizerState, model, provider string) view.ProviderState {
	t.Helper()
	for _, m := range list {
		if m.Model != model {
			continue
		}
		for _, p := range m.Providers {
			if p.Name == provider {
				return p
			}
		}
	}
	t.Fatalf("no %s of %s in %+v", provider, model, list)
	return view.ProviderState{}
}

// TestHungRemotes: TK-43. Each provider has its deadline, and behind those that hang
// the next is asked.
func TestHungRemotes(t *testing.T) {
	hung := newEngineServer(t, map[string]string{chatRender: "hang", "/tokenize": "hang"})
	good := newEngineServer(t, map[string]string{"/tokenize": `{"tokens":[3],"count":1}`})
	short := func(l *Limits) { l.RenderTimeout, l.TokenizeTimeout = 20*time.Millisecond, 20*time.Millisecond }
	r := newChainRig(t, Model{Render: Endpoints{URLs: []string{hung.url}}, Tokenize: Endpoints{URLs: []string{good.url}, Timeout: 30 * time.Second}}, short)
	if a := r.ask(chatPath, hello); a.Provider != "tokenize" || tried(a) != "render tokenize-deadline" {
		t.Errorf("%+v", a)
	}
	r = newChainRig(t, Model{Render: Endpoints{URLs: []string{hung.url}}, Tokenize: Endpoints{URLs: []string{hung.url}}}, short)
	if a := r.ask(chatPath, hello); a.Why != reason.TokenizeSlow || tried(a) != "render tokenize-deadline, tokenize tokenize-deadline" {
		t.Errorf("%+v", a)
	}
}

// TestLoadingDelaysNobody: until the files are read the next provider is asked, and
// then the native one.
func TestLoadingDelaysNobody(t *testing.T) {
	e := newEngineServer(t, map[string]string{"/tokenize": `{"tokens":[3],"count":1}`})
	m := Model{Name: "base", Tokenizer: Tokenizer{Source: modelFolder(t, nil)}, Tokenize: Endpoints{URLs: []string{e.url}}}
	r := newChainRig(t, Model{Tokenize: m.Tokenize}, nil)
	r.turn <- struct{}{} // somebody else is loading
	r.rules = newRules(&Config{Models: Models{m}, Weights: r.rules.policy}, r.chain)
	if a := r.ask(completionPath, helloText); a.Provider != "tokenize" || a.Tried[0].Why != reason.Loading {
		t.Errorf("while it loads: %+v", a)
	}
	if s := providerOf(t, r.snapshot(), "base", "native"); s.State != "loading" {
		t.Errorf("state %+v", s)
	}
	<-r.turn
	r.settle(time.Minute)
	if a := r.ask(completionPath, helloText); a.Provider != "native" {
		t.Errorf("once loaded: %+v", a)
	}
	s := providerOf(t, r.snapshot(), "base", "native")
	if s.State != "ready" || s.Told != 1 || s.Files == nil || len(s.Files.SHA256) != 64 || s.Files.Split == "" {
		t.Errorf("state %+v", s)
	}
}

// A reload keeps a tokenizer whose section says the same, and ends one that is gone.
func TestReloadKeepsTokenizers(t *testing.T) {
	m := Model{Name: "base", Tokenizer: Tokenizer{Source: modelFolder(t, nil)}}
	r := newChainRig(t, m, nil)
	first := r.natives["base"]
	again := m
	again.Tokenizer.Order = []string{"native"}
	r.chain(&again)
	r.keep(Models{again})
	if r.natives["base"] != first {
		t.Error("the tokenizer was loaded anew for another order")
	}
	other := m
	other.Tokenizer.Mode = "mistral"
	r.chain(&other)
	if r.natives["base"] == first {
		t.Error("another mode changed nothing")
	}
	select {
	case <-first.done:
	default:
		t.Error("the old one runs on")
	}
	r.keep(Models{{Name: "base"}})
	if len(r.natives) != 0 {
		t.Errorf("%v run on", slices.Collect(maps.Keys(r.natives)))
	}
}

// TestHungHubHoldsUpNobody: a model whose hub gives no answer does not keep another
// from being loaded, though one loads at a time.
func TestHungHubHoldsUpNobody(t *testing.T) {
	asked := make(chan struct{}, 9)
	hub := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(hub.Close)
	from := func() (*modelsource.Settings, error) {
		return &modelsource.Settings{Endpoint: hub.URL, Cache: t.TempDir(), Retries: -1}, nil
	}
	engine := func() chat.Engine { return chat.VLLM }
	turn, log := make(chan struct{}, 1), slog.New(slog.DiscardHandler)
	hung := startNative("hung", Tokenizer{Source: "acme/tiny"}, from, engine, nil, turn, log)
	t.Cleanup(hung.Close)
	<-asked
	local := startNative("local", Tokenizer{Source: modelFolder(t, nil)}, from, engine, nil, turn, log)
	t.Cleanup(local.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // the hub is waited for longer
	defer cancel()
	if local.wait(ctx); local.current() == nil || hung.state.Load().why != reason.Loading {
		t.Errorf("local: %+v, hung: %+v", local.state.Load(), hung.state.Load())
	}
}

// TestExplainSaysTheSplitter: TK-10. A pattern that is none of those known is split by
// regexp2, which explain says of every question.
func TestExplainSaysTheSplitter(t *testing.T) {
	for want, folder := range map[string]string{
		"cl100k/3": modelFolder(t, nil),
		"regex":    modelFolder(t, map[string]func(string) string{"tokenizer.json": swap(`|'d)`, `|'d|'x)`)}),
	} {
		c := newChainRig(t, Model{Tokenizer: Tokenizer{Source: folder}}, nil)
		r := newRig(t, rigOptions{
			provider: c.natives["base"], pods: []pod.Spec{{Name: "a", Address: "10.0.0.1:8000", Model: "base"}},
			config: func(c *Config) { c.Models = Models{{Name: "base"}} },
		})
		r.picker.tokenizers = c.snapshot
		x, _, no := r.picker.Explain(t.Context(), &ask{Head: head{Path: completionPath}, Body: []byte(`{"model":"base","prompt":"Block"}`)})
		if no != nil {
			t.Fatal(no)
		}
		if x.Tokenizer.Split != want || x.Prompt != nil {
			t.Errorf("%+v, want %s", x.Tokenizer, want)
		}
	}
}
