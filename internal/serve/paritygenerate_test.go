package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/parity"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// newGenerateRig is a parityRig whose configuration lets pods compute the probes.
func newGenerateRig(t *testing.T, engines ...*tokenizingEngine) *parityRig {
	t.Helper()
	r := newParityRig(t, engines...)
	r.setGenerate("on")
	return r
}

func (r *parityRig) setGenerate(v onOff) {
	m := Model{Name: "base", Tokenizer: r.rules.models[0].Tokenizer}
	m.Tokenizer.Generate = v
	r.rules = newRules(&Config{Models: Models{m}, Weights: r.rules.policy}, r.chain)
	r.settle(time.Minute)
}

// computes answers requests as vLLM 0.32.0 does, the prompt's ids changed by lie.
func (e *tokenizingEngine) computes(t *testing.T, lie func(body string, ids []uint32)) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var q struct {
			Model     string
			MaxTokens int  `json:"max_tokens"`
			Return    bool `json:"return_token_ids"`
			Stream    bool
		}
		if err := json.Unmarshal(body, &q); err != nil || q.Model != "base" || q.MaxTokens != 1 || !q.Return || q.Stream {
			t.Errorf("asked for %s: %v", body, err)
		}
		shape := tokenizer.Completion
		if r.URL.Path == chatPath {
			shape = tokenizer.Chat
		}
		if bytes.Contains(body, []byte(`"tools"`)) { // as without --enable-auto-tool-choice
			http.Error(w, "no parser", http.StatusBadRequest)
			return
		}
		res, err := e.model.Tokenize(r.Context(), tokenizer.Text{Shape: shape, Body: body})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if lie != nil {
			lie(string(body), res.IDs)
		}
		answer := map[string]any{"id": "x", "usage": map[string]any{"prompt_tokens": len(res.IDs), "completion_tokens": 1}}
		if shape == tokenizer.Chat {
			answer["prompt_token_ids"] = res.IDs
			answer["choices"] = []any{map[string]any{"index": 0, "message": map[string]any{"role": "assistant", "content": "x"}, "token_ids": []int{9}}}
		} else {
			answer["choices"] = []any{map[string]any{"index": 0, "text": "x", "token_ids": []int{9}, "prompt_token_ids": res.IDs}}
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
	e.generates.Store(&h)
}

func (e *tokenizingEngine) answers(h http.HandlerFunc) { e.generates.Store(&h) }

// TestParityByGenerating: an engine that honours return_token_ids is believed before
// its other interfaces, which it is asked where it refuses to compute a probe; and it
// computes none unless the configuration says so.
func TestParityByGenerating(t *testing.T) {
	e := newTokenizingEngine(t)
	part := "Donaudampfschiff"
	e.wrong.Store(&part) // at /tokenize, which is not what it computes
	e.computes(t, nil)
	r := newGenerateRig(t, e)
	n := len(parity.Probes())
	if rounds := r.all(); rounds != 1 || r.check.of("base").String() != fmt.Sprintf("passed %d of %d", n, n) || r.status() != tokenizer.Exact {
		t.Errorf("%d rounds, %+v", rounds, r.check.of("base"))
	}
	if got := int(e.computed.Load()); got != n {
		t.Errorf("%d requests for %d probes", got, n)
	}
	// Switched off it is asked anew, at once, by what costs no step.
	r.setGenerate("off")
	e.computed.Store(0)
	if rounds := r.all(); rounds != 1 || e.computed.Load() != 0 || r.check.of("base").State != failed {
		t.Errorf("switched off: %d rounds, %d computed, %+v", rounds, e.computed.Load(), r.check.of("base"))
	}
}

// TestParityOfAGeneratingLiar: TK-50 for what is computed. Equal ids at /tokenize do
// not excuse it.
func TestParityOfAGeneratingLiar(t *testing.T) {
	e := newTokenizingEngine(t)
	e.computes(t, func(body string, ids []uint32) {
		if strings.Contains(body, "Donaudampfschiff") {
			ids[4]++
		}
	})
	r := newGenerateRig(t, e)
	r.all()
	p := r.check.of("base")
	if p.String() != fmt.Sprintf("failed(1 of %d)", len(parity.Probes())) || !strings.Contains(p.Detail, `"long word" differs from id 4 on`) || r.status() != tokenizer.Unverified {
		t.Errorf("%+v, %v", p, r.status())
	}
}

// TestParityFallsBack: whatever an engine does to requests that ask for ids, its other
// interfaces answer the probes, and few requests are spent on it.
func TestParityFallsBack(t *testing.T) {
	ignores := func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"choices":[{"index":0,"text":"x"}],"usage":{"prompt_tokens":3}}`)
	}
	elsewhere := newTokenizingEngine(t)
	elsewhere.computes(t, func(_ string, ids []uint32) { ids[0]++ })
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		most   int // requests that it may be asked to compute
	}{
		"ignores the field": {ignores, 2}, // one of each shape
		"null":              {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"choices":[],"prompt_token_ids":null}`) }, 2},
		"no such path":      {http.NotFound, 2},
		"fails":             {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) }, 99},
		"wants a key":       {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }, 99},
		"is no JSON":        {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, 99},
		"miscounts": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"prompt_token_ids":[1],"usage":{"prompt_tokens":3}}`)
		}, 99},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) { hang(r) }, 5},
		"begins and hangs": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"prompt_token_ids":[`)
			_ = http.NewResponseController(w).Flush()
			hang(r)
		}, 5},
		"never ends": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"prompt_token_ids":[1`)
			for id := bytes.Repeat([]byte(",1"), 1<<15); r.Context().Err() == nil; {
				if _, err := w.Write(id); err != nil {
					return
				}
			}
		}, 99},
		"sends it elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+elsewhere.addr.String()+r.URL.Path, http.StatusTemporaryRedirect)
		}, 99},
	} {
		t.Run(name, func(t *testing.T) {
			e := newTokenizingEngine(t)
			e.answers(c.answer)
			r := newGenerateRig(t, e)
			r.check.pauses.deadline = 2 * time.Second
			r.all()
			n := len(parity.Probes())
			if p := r.check.of("base"); p.String() != fmt.Sprintf("passed %d of %d", n, n) {
				t.Errorf("%+v", p)
			}
			if got := int(e.computed.Load()); got == 0 || got > c.most {
				t.Errorf("asked %d times to compute", got)
			}
		})
	}
	if got := elsewhere.asked.Load(); got != 0 {
		t.Errorf("%d probes were sent where the engine pointed to", got)
	}
}

// hang waits until the client has left, which a server sees once it has read the body.
func hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// TestParityOfAHangingEngine: one that hangs and offers nothing else is a failure, not
// nobody to ask.
func TestParityOfAHangingEngine(t *testing.T) {
	e := newTokenizingEngine(t)
	e.status.Store(http.StatusNotFound)
	e.answers(func(_ http.ResponseWriter, r *http.Request) { hang(r) })
	r := newGenerateRig(t, e)
	r.check.pauses.deadline = 2 * time.Second
	if !r.turn() {
		t.Fatal("not asked")
	}
	if p := r.check.of("base"); p.State != notRun || p.Why != string(reason.ParityFailing) {
		t.Errorf("%+v", p)
	}
}
