package prompt

import (
	"bytes"
	"testing"
)

func piecesOf(body string) string {
	var b bytes.Buffer
	Pieces([]byte(body), func(p []byte) { b.Write(p) })
	return b.String()
}

func TestPieces(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"completion", `{"model":"m","prompt":"hi","max_tokens":3}`, `prompt"hi"`},
		{"tools come first", `{"messages":[{"role":"user"}], "tools": [1] ,"temperature":0.5}`, `tools[1]messages[{"role":"user"}]`},
		{"system of the Anthropic API", `{"messages":[],"system":"be kind"}`, `system"be kind"messages[]`},
		{"responses", `{"input":"x","instructions":"y"}`, `instructions"y"input"x"`},
		{"the last of two counts", `{"prompt":"a","prompt":"b"}`, `prompt"b"`},
		{"null is nothing", `{"prompt":null,"tools":null}`, ``},
		{"NaN as it is", `{"x":Infinity,"tools":[NaN, 0.0],"messages":["NaN"]}`, `tools[NaN, 0.0]messages["NaN"]`},
		{"no NaN", `{"tools":[NaNs],"messages":[]}`, ``},
		{"a list", `{"prompt":["a",[1,2]]}`, `prompt["a",[1,2]]`},
		{"byte order mark", "\xef\xbb\xbf{\"prompt\":\"a\"}", `prompt"a"`},
		{"no object", `["prompt"]`, ``},
		{"cut", `{"prompt":"a","tools":[`, ``},
		{"UTF-16", "\xff\xfe{\x00", ``},
	} {
		if got := piecesOf(tc.body); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// FuzzPieces: no body breaks it, and what it hands out stands in the body.
func FuzzPieces(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":"x"}],"tools":[{"a":1}]}`))
	f.Add([]byte("\xef\xbb\xbf{\"prompt\" : [1, 2]}"))
	f.Add([]byte(`{"tools":[NaN],"prompt":"a","x":-Infinity}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		name := true
		Pieces(body, func(p []byte) {
			if !name && !bytes.Contains(body, p) {
				t.Errorf("%q is not in %q", p, body)
			}
			name = !name
		})
	})
}
