package pyjson_test

import (
	"bytes"
	"encoding/json/jsontext"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pyjson"
)

// FuzzNumbers: the copy differs in nothing but the constants, and what the pair says is
// what a reader says that looks for the constants itself, value by value.
func FuzzNumbers(f *testing.F) {
	for _, s := range []string{`{"a":NaN,"b":[Infinity,-Infinity,0.0,"NaN"],"a":1}`, `[NaN1]`, `[1NaN]`, `{NaN:1}`, `"\"NaN`, "NaN", `[-NaN]`, `[[],NaN,{}]`, `[NaN NaN]`, `{"Infinity":Infinity}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		numbers := pyjson.Numbers(text)
		if !bytes.Equal(before, text) {
			t.Fatal("the text was changed")
		}
		tokens, ok := tokensOf(text)
		if numbers == nil {
			if ok && slices.ContainsFunc(tokens, isConstant) {
				t.Fatalf("%q has a constant that was not found", text)
			}
			return
		}
		if len(numbers) != len(text) {
			t.Fatalf("%d bytes instead of %d", len(numbers), len(text))
		}
		if jsontext.Value(numbers).IsValid(lenient...) != ok {
			t.Fatalf("%q is JSON: %v, its copy %q: %v", text, ok, numbers, !ok)
		}
		if ok && !slices.Equal(values(text, numbers), tokens) {
			t.Fatalf("%q read as %q instead of %q", text, values(text, numbers), tokens)
		}
	})
}

var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

func isConstant(s string) bool { return s == "NaN" || s == "Infinity" || s == "-Infinity" }

// values are the tokens of the copy, with the constants named again.
func values(text, numbers []byte) (out []string) {
	d := jsontext.NewDecoder(bytes.NewReader(numbers), lenient...)
	for {
		var raw string
		switch d.PeekKind() {
		case '"', '0':
			v, err := d.ReadValue()
			if err != nil {
				return out
			}
			raw = string(v)
		default:
			tok, err := d.ReadToken()
			if err != nil {
				return out
			}
			raw = tok.String()
		}
		start := d.InputOffset() - int64(len(raw))
		switch at := text[start:]; {
		case pyjson.IsNaN(text, start):
			raw = "NaN"
		case bytes.HasPrefix(at, []byte("Infinity")), bytes.HasPrefix(at, []byte("-Infinity")):
			raw = strings.Replace(raw, "1e999999", "Infinity", 1)
		}
		out = append(out, raw)
	}
}

// tokensOf is the slow twin: it cuts the text at punctuation, white space and strings,
// and asks the library whether it is JSON with null for each constant.
func tokensOf(text []byte) (out []string, ok bool) {
	var asNull []byte
	for i := 0; i < len(text); {
		n := 1
		switch c := text[i]; {
		case c == '"':
			for n = 1; i+n < len(text) && text[i+n] != '"'; n++ {
				if text[i+n] == '\\' {
					n++
				}
			}
			n = min(n+1, len(text)-i)
		case !strings.ContainsRune(" \t\r\n,:[]{}", rune(c)):
			for n = 1; i+n < len(text) && !strings.ContainsRune(" \t\r\n,:[]{}\"", rune(text[i+n])); n++ {
			}
		}
		token := string(text[i : i+n])
		i += n
		if isConstant(token) {
			asNull = append(asNull, "null"...)
		} else {
			asNull = append(asNull, token...)
		}
		if !strings.Contains(" \t\r\n,:", token) {
			out = append(out, token)
		}
	}
	return out, jsontext.Value(asNull).IsValid(lenient...)
}
