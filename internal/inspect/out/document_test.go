package out

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/goccy/go-yaml"
)

// What an engine calls itself reaches the terminal in every format.
func TestDocumentsFromTheWire(t *testing.T) {
	for _, name := range []string{
		"m", "a<b>&c", "two\nlines\tand a tab", "\x1b]0;pwn\a", "\x9b31m", "\u009b31m", "\u202eevil", "\u2066x", "\U000e0001tag", "\x7f", "\ufffd", `\u001b`, "\r", "\x00",
	} {
		text, err := json.Marshal(map[string]any{name: []string{name}})
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		safe := JSON(text)
		if err := json.Unmarshal(safe, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: JSON %s: %v, %v", name, safe, got, err)
		}
		doc, err := YAML(text)
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		if err := yaml.Unmarshal(doc, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: YAML %q: %v, %v", name, doc, got, err)
		}
		for _, b := range [][]byte{safe, doc} {
			if bytes.ContainsFunc(b, func(r rune) bool { return r != '\n' && r != '\t' && r != '\ufffd' && unsafe(r) }) {
				t.Errorf("%q is printed as %q", name, b)
			}
		}
	}
}
