package prompt

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

func piecesOf(t *testing.T, body string) string {
	t.Helper()
	var b bytes.Buffer
	if err := Pieces(t.Context(), []byte(body), func(p []byte) { b.Write(p) }); err != nil {
		t.Error(err)
	}
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
		{"an empty list", `{"input":[ ],"prompt":[]}`, `prompt[]input[ ]`},
		{"a list", `{"prompt":["a",[1,2]]}`, `prompt["a",[1,2]]`},
		{"byte order mark", "\xef\xbb\xbf{\"prompt\":\"a\"}", `prompt"a"`},
		{"no object", `["prompt"]`, ``},
		{"a broken list", `{"prompt":[1 2]}`, ``},
		{"cut", `{"prompt":"a","tools":[`, ``},
		{"UTF-16", "\xff\xfe{\x00", ``},
	} {
		if got := piecesOf(t, tc.body); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// ending is a context that has ended once it was looked at some times: no clock decides
// how far a call gets.
type ending struct {
	context.Context
	looks int
}

func (c *ending) Err() error {
	if c.looks--; c.looks < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestPiecesEnd: the end of the context is looked for in each element of a list and
// between stretches. What was written until then is the beginning of the whole.
func TestPiecesEnd(t *testing.T) {
	long := strings.Repeat("x", stretch)
	for _, body := range []string{
		`{"model":"m","messages":[` + strings.Repeat(`{"role":"user","content":"`+long[:100]+`"},`, 5000) + `{}]}`,
		`{"prompt":"` + strings.Repeat(long, 200) + `"}`,
		`{"tools":[1,2],"x":NaN,"prompt":["` + long + `",3]}`,
	} {
		whole, written := piecesOf(t, body), 0
		for _, looks := range []int{0, 1, 2, 3, 100, 1 << 20} {
			var b strings.Builder
			err := Pieces(&ending{t.Context(), looks}, []byte(body), func(p []byte) { b.Write(p) })
			if ended := b.Len() < len(whole); ended != errors.Is(err, context.DeadlineExceeded) || !ended && err != nil {
				t.Errorf("%.20q, %d looks: %d of %d bytes, %v", body, looks, b.Len(), len(whole), err)
			}
			if !strings.HasPrefix(whole, b.String()) || b.Len() < written {
				t.Errorf("%.20q, %d looks: not the beginning", body, looks)
			}
			written = b.Len()
		}
		if written != len(whole) {
			t.Errorf("%.20q: only %d of %d bytes were ever written", body, written, len(whole))
		}
	}
}

// FuzzPieces: no body breaks it, and what it hands out stands in the body.
func FuzzPieces(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":"x"}],"tools":[{"a":1}]}`))
	f.Add([]byte("\xef\xbb\xbf{\"prompt\" : [1, 2]}"))
	f.Add([]byte(`{"tools":[NaN],"prompt":"a","x":-Infinity}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if err := Pieces(t.Context(), body, func(p []byte) {
			if !slices.Contains(pieces[:], string(p)) && !bytes.Contains(body, p) {
				t.Errorf("%q is not in %q", p, body)
			}
		}); err != nil {
			t.Error(err)
		}
	})
}
