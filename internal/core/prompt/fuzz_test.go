package prompt_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/pyjson"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

func FuzzParse(f *testing.F) {
	paths := []string{completions, chat, responses, "/v1/messages", "/v1/embeddings", "/generate"}
	index := map[string]byte{}
	for i, p := range paths {
		index[p] = byte(i)
	}
	for _, file := range requestFiles(f) {
		for i, rec := range requests(f, file) {
			if i%5 == 0 && len(rec.Body) > 0 {
				f.Add(index[rec.Path], []byte(rec.Body))
			}
		}
	}
	f.Add(byte(0), []byte(`{"model":"m","prompt":[[1],[2]],"temperature":NaN}`))
	f.Add(byte(1), []byte(`{"x":-Infinity,"model":"m","messages":[{"content":"NaN"}],"n":NaN,"tools":[NaN]}`))
	f.Add(byte(1), []byte(`{"model":"m","messages":[{"content":[{"type":"image_url"},"x",7]},8]}`))
	f.Fuzz(func(t *testing.T, path byte, body []byte) {
		p := paths[int(path)%len(paths)]
		r, problem := prompt.Parse(p, "", body, prompt.Limits{})
		if numbers := pyjson.Numbers(body); numbers != nil { // numbers in the place of NaN change nothing
			other, refused := prompt.Parse(p, "", numbers, prompt.Limits{})
			if !reflect.DeepEqual(r, other) || (problem == nil) != (refused == nil) {
				t.Fatalf("%q\n%+v %v\n%+v %v", body, r, problem, other, refused)
			}
		}
		if _, cut := prompt.Parse(p, "", body, prompt.Limits{Cut: true}); cut != nil {
			t.Fatal("a cut body was refused")
		}
		if problem != nil {
			if problem.Status != 400 || problem.Message == "" {
				t.Fatalf("%+v", problem)
			}
			// What encoding/json takes as an object with a model is no problem.
			var o struct{ Model string }
			var m map[string]any
			if json.Unmarshal(body, &m) == nil && json.Unmarshal(body, &o) == nil && o.Model != "" && hasKey(m, "model") {
				t.Fatalf("refused %q: %v", body, problem)
			}
			return
		}
		if len(r.TokenIDs) > 0 && (r.Unmatched != "" || r.Shape != 0) || r.IDs > len(body) {
			t.Fatalf("%+v", r)
		}
		ids := len(r.TokenIDs)
		for _, list := range r.Further {
			if len(list) == 0 {
				t.Fatalf("a prompt of no ids: %+v", r)
			}
			ids += len(list)
		}
		if ids > 0 && (ids != r.IDs || 1+len(r.Further) != r.Prompts) || r.Unmatched == "" && r.Prompts > tokenizer.MaxPrompts {
			t.Fatalf("%d ids: %+v", ids, r)
		}
		if r.Unmatched == "" && r.Shape == 0 && len(r.TokenIDs) == 0 {
			t.Fatalf("neither ids nor a reason: %+v", r)
		}
		if r.N < 1 || r.Chars < 0 {
			t.Fatalf("%+v", r)
		}
	})
}

// hasKey is exact where encoding/json would fold case.
func hasKey(m map[string]any, key string) bool {
	s, ok := m[key].(string)
	return ok && s != ""
}

func BenchmarkParse(b *testing.B) {
	words := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 10_000)
	text := []byte(`{"model":"m","messages":[{"role":"user","content":"` + words + `"}]}`)
	ids := []byte(`{"model":"m","prompt":[` + strings.Repeat("15123,", 70_000) + `1]}`)
	for name, c := range map[string]struct {
		path string
		body []byte
	}{"chat 450 kB": {chat, text}, "ids 420 kB": {completions, ids}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, p := prompt.Parse(c.path, "", c.body, prompt.Limits{}); p != nil {
					b.Fatal(p)
				}
			}
		})
		b.Run(name+"/tree", func(b *testing.B) { // the reference: what a tree costs
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				var v map[string]any
				if err := json.Unmarshal(c.body, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
