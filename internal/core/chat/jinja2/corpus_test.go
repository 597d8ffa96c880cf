package jinja2

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/testdata"
)

// TestJSONAgainstPython: what Python's json.loads makes of thousands of
// random and mutated texts (testdata/json). What it refuses is refused; what it
// takes is the same value, or said to be unsupported. The mark in front of UTF-8 it
// skips in bytes and not in text: bodies come here without.
func TestJSONAgainstPython(t *testing.T) {
	var texts []struct {
		Text        []byte
		Dump, Error string
	}
	testdata.GzipJSON(t, filepath.Join(testdata.Dirs(t, "json")[0], "corpus.json.gz"), &texts)
	same, refused, unsupported := 0, 0, 0
	for _, c := range texts {
		v, err := ParseJSON(bytes.TrimPrefix(c.Text, []byte("\xef\xbb\xbf")))
		no := new(Refused)
		switch {
		case IsUnsupported(err) && (bytes.Contains(c.Text, []byte(`\u`)) || !utf8.Valid(c.Text)): // half a character
			unsupported++
		case c.Error != "":
			if refused++; !errors.As(err, &no) {
				t.Errorf("%q: Python has %s, we %v", c.Text, c.Error, err)
			}
		case err != nil:
			t.Errorf("%q: %v, Python reads %s", c.Text, err, c.Dump)
		default:
			if got, err := DumpJSON(v, true); err != nil || got != c.Dump {
				t.Errorf("%q: %s %v, Python reads %s", c.Text, got, err, c.Dump)
			}
			same++
		}
	}
	t.Logf("%d are the same, %d are refused by both, %d are unsupported here", same, refused, unsupported)
	if same < 1500 || refused < 2000 || unsupported > 150 {
		t.Error("the corpus is too one-sided")
	}
}

// TestJSONAgainstOrjson: what orjson makes of the same texts.
func TestJSONAgainstOrjson(t *testing.T) {
	dir := testdata.Dirs(t, "json")[0]
	var texts []struct{ Text []byte }
	testdata.GzipJSON(t, filepath.Join(dir, "corpus.json.gz"), &texts)
	var want []struct{ Dump, Error string }
	testdata.GzipJSON(t, filepath.Join(dir, "orjson.json.gz"), &want)
	if len(texts) != len(want) {
		t.Fatalf("%d texts, %d answers", len(texts), len(want))
	}
	same, refused := 0, 0
	for i, w := range want {
		v, err := ParseOrjson(texts[i].Text)
		no := new(Refused)
		switch {
		case w.Error != "":
			if refused++; !errors.As(err, &no) {
				t.Errorf("%q: orjson has %s, we %v", texts[i].Text, w.Error, err)
			}
		case err != nil:
			t.Errorf("%q: %v, orjson reads %s", texts[i].Text, err, w.Dump)
		default:
			if got, err := DumpJSON(v, true); err != nil || got != w.Dump {
				t.Errorf("%q: %s %v, orjson reads %s", texts[i].Text, got, err, w.Dump)
			}
			same++
		}
	}
	t.Logf("%d are the same, %d are refused by both", same, refused)
	if same < 1400 || refused < 2000 {
		t.Error("the corpus is too one-sided")
	}
}
