package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/inspect"
)

func TestReadDetokenized(t *testing.T) {
	long := strings.Repeat("é", 1000)
	for body, want := range map[string]string{
		`{"prompt":"a b"}`:           "a b",
		`{"text":"a"}`:               "a",
		`{"prompt":"a","text":"b"}`:  "a",
		`{"prompt":""}`:              "",
		`{"prompt":"` + long + `"}`:  long[:maxText] + "…",
		`{"prompt":"x` + long + `"}`: "x" + long[:maxText-2] + "…",
		`{"prompt":null}`:            "none",
		`{"prompt":7}`:               "none",
		`{"prompt":"a"} and more`:    "none",
		`{"prompt":"a"`:              "none",
		`[]`:                         "none",
		``:                           "none",
		`{"prompt":"` + strings.Repeat("a", 1<<16) + `"}`: "none",
	} {
		got := "none"
		if text := readDetokenized(strings.NewReader(body)); text != nil {
			got = *text
		}
		if got != want {
			t.Errorf("%.60s: %q, want %q", body, got, want)
		}
	}
}

// FuzzDetokenized: what is shown of a reply is short and what JSON can hold.
func FuzzDetokenized(f *testing.F) {
	f.Add([]byte(`{"prompt":"a"}`))
	f.Add([]byte(`{"text":"\\ud800","prompt":null}`))
	f.Add([]byte(`[[[[`))
	f.Fuzz(func(t *testing.T, b []byte) {
		text := readDetokenized(bytes.NewReader(b))
		if text != nil && (len(*text) > maxText+len("…") || !utf8.ValidString(*text) || !json.Valid(b)) {
			t.Errorf("%q", *text)
		}
	})
}

// TestCompareWithAWildEngine: whatever an engine does, the command ends, in its words.
func TestCompareWithAWildEngine(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		fmt.Fprint(w, `{"tokens":`+equalIDs+`,"prompt":"x"}`)
	}))
	t.Cleanup(other.Close)
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	moved := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}
	endless := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"prompt":"`)
		for r.Context().Err() == nil {
			if _, err := w.Write(bytes.Repeat([]byte("a"), 1<<16)); err != nil {
				return
			}
		}
	}
	for name, tc := range map[string]struct {
		tokenize, detokenize http.HandlerFunc
		patience             time.Duration
		want                 string // code of the error
	}{
		"hangs":               {hang, hang, 50 * time.Millisecond, "E_ENGINE"},
		"moves":               {moved, moved, time.Minute, "E_ENGINE"},
		"never ends":          {endless, endless, time.Minute, "E_ENGINE"},
		"text that hangs":     {nil, hang, 2 * time.Second, "E_TOKENS_DIFFER"},
		"text elsewhere":      {nil, moved, time.Minute, "E_TOKENS_DIFFER"},
		"text without an end": {nil, endless, time.Minute, "E_TOKENS_DIFFER"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/detokenize":
					tc.detokenize(w, r)
				case r.URL.Path == "/tokenize" && tc.tokenize == nil:
					fmt.Fprint(w, `{"tokens":`+otherIDs+`}`)
				case r.URL.Path == "/tokenize":
					tc.tokenize(w, r)
				default:
					http.NotFound(w, r)
				}
			}))
			t.Cleanup(s.Close)
			out, got := pipe()
			c := Command{Input: Input{Prompt: "Once upon a time"}, Format: "table", Engine: s.URL, Patience: tc.patience}
			var e *inspect.Error
			if err := c.Run(t.Context(), &asker{body: withPrompt(t)}, out); !errors.As(err, &e) || e.Code != tc.want {
				t.Errorf("ends with %v", err)
			}
			if strings.Contains(got.String(), "aaaa") {
				t.Errorf("shows %.300s", got)
			}
		})
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d questions went where the engine pointed to", n)
	}
}
