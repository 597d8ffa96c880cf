package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/testdata"
)

// tokenizeServer is an HTTP server with its own /tokenize.
func tokenizeServer(t *testing.T, h http.HandlerFunc) (TokenizerEndpoint, *atomic.Int32) {
	t.Helper()
	asked := new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return TokenizerEndpoint{URL: s.URL, Engine: pod.EngineVLLM}, asked
}

func tokenizeClient(t *testing.T, list ...TokenizerEndpoint) *RemoteTokenizer {
	t.Helper()
	c := NewTokenizeClient(nil, func(string) []TokenizerEndpoint { return list })
	t.Cleanup(c.Close)
	return c
}

// replies answers each prompt with one id per byte.
func replies(w http.ResponseWriter, r *http.Request) {
	var in struct{ Model, Prompt string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Method != http.MethodPost || r.URL.Path != "/tokenize" || in.Model != "base" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	ids := []int{}
	for _, b := range []byte(in.Prompt) {
		ids = append(ids, int(b))
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"count": len(ids), "max_model_len": 2048, "tokens": ids})
}

func answers(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"error":{}}`, code) }
}

func secretText() tokenizer.Text {
	return tokenizer.Text{Model: "base", Shape: tokenizer.Completion, Body: []byte(`{"model":"sql","prompt":"secret"}`)}
}

func TestTokenize(t *testing.T) {
	good, asked := tokenizeServer(t, replies)
	good.URL += "/"
	c := tokenizeClient(t, good)
	for range 3 {
		res, err := c.Tokenize(t.Context(), secretText())
		if err != nil || res.Status != tokenizer.Exact || res.Cut >= 0 || !slices.Equal(res.IDs, []uint32{'s', 'e', 'c', 'r', 'e', 't'}) {
			t.Fatalf("%+v %v", res, err)
		}
	}
	if asked.Load() != 3 || c.Name() != "tokenize" {
		t.Errorf("asked %d times", asked.Load())
	}
}

// TestTokenizeSeveral: an endpoint is asked once for each prompt of a request, and one
// that fails at the last of them is left for another, which is asked for all.
func TestTokenizeSeveral(t *testing.T) {
	text := tokenizer.Text{Model: "base", Shape: tokenizer.Completion, Body: []byte(`{"prompt":["ab","c","def"]}`)}
	good, asked := tokenizeServer(t, replies)
	count := 0
	bad, _ := tokenizeServer(t, func(w http.ResponseWriter, r *http.Request) {
		if count++; count == 3 {
			answers(500)(w, r)
			return
		}
		replies(w, r)
	})
	c := tokenizeClient(t, good, bad) // the second is asked first
	for i := range 3 {
		res, err := c.Tokenize(t.Context(), text)
		if err != nil || res.Status != tokenizer.Exact || res.Cut >= 0 || !slices.Equal(res.IDs, []uint32{'a', 'b'}) ||
			!slices.EqualFunc(res.Further, [][]uint32{{'c'}, {'d', 'e', 'f'}}, slices.Equal) {
			t.Fatalf("%+v %v", res, err)
		}
		if n := int(asked.Load()); n != 3*(i+1) || count != 3 {
			t.Errorf("asked %d times, and %d the one that failed", n, count)
		}
	}
	many := tokenizer.Text{Model: "base", Shape: tokenizer.Completion, Body: []byte(`{"prompt":["a"` + strings.Repeat(`,"a"`, 16) + `]}`)}
	if _, err := c.Tokenize(t.Context(), many); !errors.Is(err, tokenizer.ErrManyPrompts) || asked.Load() != 9 {
		t.Errorf("%v, asked %d times", err, asked.Load())
	}
}

func TestTokenizeAnotherEndpoint(t *testing.T) {
	for name, bad := range map[string]http.HandlerFunc{
		"500":      answers(500),
		"not JSON": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"no ids":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"tokens":[]}`) },
		"cut short": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			fmt.Fprint(w, `{`)
		},
		"redirected": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		},
	} {
		t.Run(name, func(t *testing.T) {
			broken, failed := tokenizeServer(t, bad)
			good, _ := tokenizeServer(t, replies)
			c := tokenizeClient(t, broken, good)
			for range 6 {
				if res, err := c.Tokenize(t.Context(), secretText()); err != nil || len(res.IDs) != 6 {
					t.Fatalf("%+v %v", res, err)
				}
			}
			// It comes last for a while: once it failed, the good one is asked first.
			if n := failed.Load(); n != 1 {
				t.Errorf("the broken endpoint was asked %d times", n)
			}
		})
	}
}

func TestTokenizeNotOffered(t *testing.T) {
	for _, code := range []int{http.StatusNotFound, http.StatusForbidden} {
		e, asked := tokenizeServer(t, answers(code))
		c := tokenizeClient(t, e)
		for i := range 3 {
			_, err := c.Tokenize(t.Context(), secretText())
			if !errors.Is(err, ErrNotOffered) || i > 0 && err != ErrNotOffered {
				t.Errorf("%d: %v", code, err)
			}
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("%d: asked %d times", code, n)
		}
		other := secretText()
		other.Model = "another" // a 404 may have meant the model
		if _, err := c.Tokenize(t.Context(), other); err == ErrNotOffered || asked.Load() != 2 {
			t.Errorf("%d: another model was not asked for: %v", code, err)
		}
	}
}

func TestTokenizeStuck(t *testing.T) {
	release := make(chan struct{})
	stuck, _ := tokenizeServer(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) }) // before the server is closed
	c := tokenizeClient(t, stuck)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := c.Tokenize(ctx, secretText())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the error quotes the prompt: %v", err)
	}
}

func TestTokenizeCancelledIsNobodysFault(t *testing.T) {
	e, _ := tokenizeServer(t, replies)
	c := tokenizeClient(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Tokenize(ctx, secretText()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if len(c.rests.of) != 0 {
		t.Errorf("the endpoint is held responsible: %v", c.rests.of)
	}
}

func TestTokenizeHugeReply(t *testing.T) {
	e, asked := tokenizeServer(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := []byte(strings.Repeat("1,", 1<<19))
		_, _ = io.WriteString(w, `{"tokens":[`)
		for range 32 { // twice the cap
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	c := tokenizeClient(t, e)
	const most = 8 << 20 // of 32 MB that are sent
	testdata.Bounded(t, most, func() {
		if res, err := c.Tokenize(t.Context(), secretText()); err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%d ids, %v", len(res.IDs), err)
		}
	})
	// It is left out, and the next prompt does not wait.
	if _, err := c.Tokenize(t.Context(), secretText()); !errors.Is(err, ErrHung) || asked.Load() != 1 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}

// TestTokenizeLongReply: what an engine may answer to a text is taken, and more to
// one with an image.
func TestTokenizeLongReply(t *testing.T) {
	ids := "[" + strings.Repeat("100000, ", 1<<18) + "1]" // 2 MB
	e, _ := tokenizeServer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"token_ids":%s,"tokens":%s}`, ids, ids) })
	long := tokenizer.Text{Model: "base", Shape: tokenizer.Completion, Body: []byte(`{"prompt":"` + strings.Repeat("a", 1<<18) + `"}`)}
	if res, err := tokenizeClient(t, e).Tokenize(t.Context(), long); err != nil || len(res.IDs) != 1<<18+1 {
		t.Errorf("%d ids, %v", len(res.IDs), err)
	}
	r := NewRenderClient(nil, func(string) []TokenizerEndpoint { return []TokenizerEndpoint{e} })
	t.Cleanup(r.Close)
	image := tokenizer.Text{Model: "base", Shape: tokenizer.Chat, Media: true, Body: []byte(`{"messages":[]}`)}
	if res, err := r.Tokenize(t.Context(), image); err != nil || len(res.IDs) != 1<<18+1 {
		t.Errorf("%d ids, %v", len(res.IDs), err)
	}
}

func TestTokenizeNobodyToAsk(t *testing.T) {
	for name, list := range map[string][]TokenizerEndpoint{
		"none":                 nil,
		"no tokenizer service": {{URL: "http://127.0.0.1:1", Engine: pod.EngineTriton}, {URL: "http://127.0.0.1:1", Engine: pod.EngineTRTLLM}},
	} {
		if _, err := tokenizeClient(t, list...).Tokenize(t.Context(), secretText()); !errors.Is(err, ErrNotOffered) {
			t.Errorf("%s: %v", name, err)
		}
	}
	gone := tokenizeClient(t, TokenizerEndpoint{URL: "http://127.0.0.1:1"})
	if _, err := gone.Tokenize(t.Context(), secretText()); err == nil || errors.Is(err, ErrNotOffered) {
		t.Errorf("refused connection: %v", err)
	}
	text := secretText()
	text.Body = []byte(`{"prompt":[1]}`)
	if _, err := gone.Tokenize(t.Context(), text); !errors.Is(err, tokenizer.ErrNoPrompt) {
		t.Errorf("nothing to tokenize: %v", err)
	}
}

func TestTokenizeDialects(t *testing.T) {
	text := tokenizer.Text{Model: "base", Shape: tokenizer.Chat, Body: []byte(`{"messages":[],"chat_template_kwargs":{"x":1}}`)}
	for e, want := range map[pod.Engine]tokenizer.Status{
		pod.EngineVLLM: tokenizer.Exact, pod.EngineSGLang: tokenizer.Unverified, pod.EngineUnknown: tokenizer.Exact,
	} {
		server, _ := tokenizeServer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"tokens":[5],"count":1}`) })
		server.Engine = e
		if res, err := tokenizeClient(t, server).Tokenize(t.Context(), text); err != nil || res.Status != want {
			t.Errorf("%v: %+v %v", e, res, err)
		}
	}
}

// Whatever comes back, an error says nothing of the prompt, nor of what may be a secret in
// the endpoint's address.
func TestTokenizerErrorsAreWordless(t *testing.T) {
	for name, text := range garbled(1) {
		t.Run(name, func(t *testing.T) {
			url := strings.Replace(says(t, text), "http://", "http://user:pass@", 1) + "/?key=word"
			for _, c := range []*RemoteTokenizer{
				tokenizeClient(t, TokenizerEndpoint{URL: url}),
				NewRenderClient(nil, func(string) []TokenizerEndpoint { return []TokenizerEndpoint{{URL: url}} }),
			} {
				defer c.Close()
				_, err := c.Tokenize(t.Context(), secretText())
				if err == nil {
					t.Fatalf("%s: it was read", c.Name())
				}
				for _, word := range []string{"secret", "user", "pass", "word"} {
					if strings.Contains(err.Error(), word) {
						t.Errorf("%s: %q: %v", c.Name(), word, err)
					}
				}
			}
		})
	}
}
