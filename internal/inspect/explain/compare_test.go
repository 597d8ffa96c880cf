package explain

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/testdata"
)

// withPrompt is an answer of serve that has the prompt's ids 100 to 119.
func withPrompt(t *testing.T) []byte {
	t.Helper()
	_, x := answer(t, "picked")
	size, native, status := 8, "native", "exact"
	x.Prompt = &pick.ExplainedPrompt{BlockSize: &size, Files: &view.TokenizerFiles{
		Source: "acme/tiny", Vocabulary: "tokenizer.json", SHA256: strings.Repeat("ab", 32), Split: "llama3", Template: "chat_template.jinja",
	}}
	for i := range uint32(20) {
		x.Prompt.IDs = append(x.Prompt.IDs, 100+i)
	}
	x.Tokenizer.Provider, x.Tokenizer.Status = &native, &status
	x.Tokenizer.Parity = &view.Parity{State: "passed", Compared: 21, Engine: "vllm-a-0"}
	b, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// engine answers /tokenize with ids and /detokenize with their number.
func engine(t *testing.T, tokens string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/tokenize":
			if !strings.Contains(string(body), "Once upon a time") || !strings.Contains(string(body), `"model":"llama-3.3-70b"`) {
				t.Errorf("asked %s", body)
			}
			_, _ = io.WriteString(w, `{"tokens":`+tokens+`}`)
		case "/detokenize":
			_, _ = io.WriteString(w, `{"prompt":"some \u001b text"}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

const (
	equalIDs = "[100,101,102,103,104,105,106,107,108,109,110,111,112,113,114,115,116,117,118,119]"
	otherIDs = "[100,101,102,103,104,105,106,107,108,109,110,7,112,113,114,115,116,117,118,119]"
)

// TestShowTokens: ids by blocks and what made them, and an engine's beside them.
func TestShowTokens(t *testing.T) {
	for _, tc := range []struct {
		golden, tokens string
		kind           inspect.Kind
	}{
		{"tokens-equal", equalIDs, 0}, {"tokens-differ", otherIDs, inspect.Negative},
	} {
		t.Run(tc.golden, func(t *testing.T) {
			s, got := pipe()
			url := engine(t, tc.tokens)
			a := &asker{body: withPrompt(t)}
			c := Command{Input: Input{Prompt: "Once upon a time"}, Format: "table", ShowTokens: true, Engine: url}
			err := c.Run(t.Context(), a, s)
			var e *inspect.Error
			if tc.kind == 0 && err != nil || tc.kind != 0 && (!errors.As(err, &e) || e.Kind != tc.kind || e.Code != "E_TOKENS_DIFFER") {
				t.Errorf("ends with %v", err)
			}
			if !a.request.Tokens {
				t.Error("serve was not asked for the ids")
			}
			text, _, _ := strings.Cut(strings.ReplaceAll(got.String(), url, "http://ENGINE"), "\nFILTERED")
			_, text, _ = strings.Cut(text, "STATE")
			testdata.Golden(t, filepath.Join("testdata", tc.golden+".golden"), []byte(text))
		})
	}
}

// TestShowTokensOfSeveral: each prompt has its own blocks, and is compared with what the
// engine makes of it.
func TestShowTokensOfSeveral(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/tokenize" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"tokens":`+[]string{equalIDs, "[7,8,9]", "[1,2,3,4,5,6,7,9]"}[asked%3]+`}`)
		asked++
	}))
	t.Cleanup(s.Close)
	var x pick.Explanation
	if err := json.Unmarshal(withPrompt(t), &x); err != nil {
		t.Fatal(err)
	}
	x.Prompts, x.Blocks, x.BlockSize, x.TailTokens = 3, nil, nil, nil
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, []byte(`{"model":"llama-3.3-70b","prompt":["a","b","c"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for last, golden := range map[uint32]string{8: "tokens-several-differ", 9: "tokens-several-equal"} {
		x.Prompt.Further = [][]uint32{{7, 8, 9}, {1, 2, 3, 4, 5, 6, 7, last}}
		body, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		o, got := pipe()
		c := Command{Input: Input{File: file, Path: "/v1/completions"}, Format: "table", ShowTokens: true, Engine: s.URL}
		if err := c.Run(t.Context(), &asker{body: body}, o); (err == nil) != (last == 9) {
			t.Errorf("ends with %v", err)
		}
		text, _, _ := strings.Cut(strings.ReplaceAll(got.String(), s.URL, "http://ENGINE"), "\nFILTERED")
		testdata.Golden(t, filepath.Join("testdata", golden+".golden"), []byte(text))
	}
}

// TestComparison in JSON: serve's answer as it is, and one object more.
func TestComparison(t *testing.T) {
	s, got := pipe()
	c := Command{Input: Input{Prompt: "Once upon a time"}, Format: "json", Engine: engine(t, otherIDs)}
	_ = c.Run(t.Context(), &asker{body: withPrompt(t)}, s)
	var x struct {
		Kind       string
		Comparison Comparison
	}
	if err := json.Unmarshal(got.Bytes(), &x); err != nil {
		t.Fatal(err)
	}
	d := x.Comparison.Difference
	if x.Kind != "Explanation" || x.Comparison.Equal || x.Comparison.By != "tokenize" || d == nil || d.At != 11 || *d.Block != 1 || d.Ours[11-d.From] != 111 || d.Theirs[11-d.From] != 7 {
		t.Errorf("%s", got)
	}
	if strings.ContainsRune(got.String(), 0x1b) {
		t.Error("a control character of the engine's reaches the terminal")
	}
}

// TestCompareErrors: what cannot be compared says why, with the house's kinds.
func TestCompareErrors(t *testing.T) {
	plain, _ := answer(t, "picked")
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	nothing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(nothing.Close)
	for name, tc := range map[string]struct {
		c    Command
		body []byte
		kind inspect.Kind
	}{
		"no URL":            {Command{Input: Input{Prompt: "x"}, Engine: "10.0.0.7:8000"}, withPrompt(t), inspect.Usage},
		"a past pick":       {Command{RequestID: "a", Engine: nothing.URL}, withPrompt(t), inspect.Usage},
		"ids of a pick":     {Command{RequestID: "a", ShowTokens: true}, withPrompt(t), inspect.Usage},
		"ids in the body":   {Command{Input: Input{Tokens: "1,2"}, Engine: nothing.URL}, withPrompt(t), inspect.Usage},
		"serve has none":    {Command{Input: Input{Prompt: "x"}, Engine: nothing.URL}, plain, inspect.Unreachable},
		"engine is down":    {Command{Input: Input{Prompt: "x"}, Engine: down.URL}, withPrompt(t), inspect.Unreachable},
		"engine offers non": {Command{Input: Input{Prompt: "x"}, Engine: nothing.URL}, withPrompt(t), inspect.Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := pipe()
			var e *inspect.Error
			if err := tc.c.Run(t.Context(), &asker{body: tc.body}, s); !errors.As(err, &e) || e.Kind != tc.kind {
				t.Errorf("ends with %v", err)
			}
		})
	}
}

// TestTemplateText: what chats are rendered by.
func TestTemplateText(t *testing.T) {
	for template, want := range map[string]string{
		"": "no template: why", "tokenizer_config.json": "template of tokenizer_config.json", "encoder deepseek_v4": "no template: chats by encoder deepseek_v4",
	} {
		if got := templateText(template, "why"); got != want {
			t.Errorf("%q: %q, want %q", template, got, want)
		}
	}
}

// TestMediaText: images are told by where they stand.
func TestMediaText(t *testing.T) {
	item := func(at int) pick.ExplainedItem { return pick.ExplainedItem{Offset: at, Length: 16} }
	many := slices.Repeat([]pick.ExplainedItem{item(0)}, 9)
	for want, list := range map[string][]pick.ExplainedItem{
		"1 media item, told apart by the engine's names: ids 34 to 49":                                 {item(34)},
		"2 media items, told apart by the engine's names: ids 34 to 49, 74 to 89":                      {item(34), item(74)},
		"9 media items, told apart by the engine's names: ids " + strings.Repeat("0 to 15, ", 8) + "…": many,
	} {
		if got := mediaText(list); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSameIDs: of a prompt that ends at its image the engine was compared up to there.
func TestSameIDs(t *testing.T) {
	for want, cut := range map[string]bool{
		"ENGINE  http://e makes the same 51 token ids by render\n":                                   false,
		"ENGINE  http://e makes the same 51 token ids by render, before the image, sound or video\n": true,
	} {
		_, x := answer(t, "picked")
		x.Tokenizer.Cut = cut
		s, got := pipe()
		if err := Render(s.Out, s, x, Options{Now: now, Against: &Comparison{Engine: "http://e", By: "render", Equal: true, Compared: 51}}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got.String(), "\n"+want) {
			t.Errorf("no %q in\n%.600s", want, got)
		}
	}
}
