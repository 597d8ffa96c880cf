package modelsource

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// The template that an engine's --chat-template names replaces the model's, and is
// read again when it changes; a bad one leaves the old in use.
func TestTemplateFile(t *testing.T) {
	p := folder(t, tinyFiles(t))
	at := filepath.Join(t.TempDir(), "chat.jinja")
	replace(t, at, []byte(`A {{ messages[0].content }}`))
	w, changes := watching(t, p, Options{TemplateFile: at})
	is := func(text string) {
		t.Helper()
		want, _, err := w.Current().EncodeText(t.Context(), text, false)
		if err != nil {
			t.Fatal(err)
		}
		got, err := w.Tokenize(context.Background(), chatText)
		if err != nil || len(got.IDs) != len(want) || got.IDs[0] != want[0] {
			t.Errorf("%v %v, want the ids of %q", got.IDs, err, text)
		}
	}
	is("A Block barrel signal")
	replace(t, at, []byte(`B: {{ messages[0].content }} again`))
	if c := next(t, changes); c.Err != nil || c.New.Template != "option" || c.New.Override == c.Old.Override {
		t.Errorf("%+v", c)
	}
	is("B: Block barrel signal again")
	for name, b := range map[string][]byte{"empty": []byte(" \n"), "not UTF-8": {0xff, 'x'}, "longer than": bytes.Repeat([]byte("x"), maxTemplate+1)} {
		replace(t, at, b)
		if c := next(t, changes); c.Err == nil || !strings.Contains(c.Err.Error(), name) || !strings.Contains(c.Err.Error(), at) {
			t.Errorf("%s: %v", name, c.Err)
		}
		is("B: Block barrel signal again")
	}
	var e *Error
	if _, err := p.Load(Options{TemplateFile: "/nowhere.jinja"}); !errors.As(err, &e) || e.Kind != Invalid || !strings.Contains(err.Error(), "/nowhere.jinja") {
		t.Errorf("%v", err)
	}
}
