package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// TestCaption: whoever reads the table must not guess what it compares with.
func TestCaption(t *testing.T) {
	for _, word := range []string{"REFERENCE is", "RATIO is VALUE / REFERENCE", "Simulated"} {
		if !strings.Contains(caption, word) {
			t.Errorf("the caption does not say %q", word)
		}
	}
}

// An interrupt leaves no file that looks whole.
func TestInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	var a, b bytes.Buffer
	dir := t.TempDir() + "/absent"
	o := options{seeds: 1, traces: "../../testdata/traces", dir: dir, stdout: &a, stderr: &b}
	for _, run := range []func(context.Context) error{o.six, o.others} {
		if err := run(ctx); !errors.Is(err, context.Canceled) || a.Len() > 0 {
			t.Errorf("%v, printed %q", err, &a)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("it left a folder")
	}
}

// The tables are replaced, and nothing else of the document; one without markers is
// left as it is.
func TestReplaceTables(t *testing.T) {
	path := t.TempDir() + "/eval.md"
	begin := "<!-- make it writes from here -->"
	for _, c := range []struct{ before, after string }{
		{"a\n" + begin + "\nold\n" + end + "\nb\n", "a\n" + begin + "\n\n| new |\n\n" + end + "\nb\n"},
		{"a\n" + begin + "\nold\n", ""},
		{"a\n" + end + "\n", ""},
	} {
		if err := os.WriteFile(path, []byte(c.before), 0o644); err != nil {
			t.Fatal(err)
		}
		want := c.after
		if want == "" {
			want = c.before
		}
		err := replaceTables(path, "make it", "| new |\n")
		got, _ := os.ReadFile(path)
		if (err == nil) != (c.after != "") || string(got) != want {
			t.Errorf("%q: %v, %q", c.before, err, got)
		}
	}
	doc, err := os.ReadFile("../../docs/eval.md")
	for _, command := range []string{"make eval", "make eval-others"} {
		if i := strings.Index(string(doc), "<!-- "+command+" writes from here -->\n"); err != nil || i < 0 || !strings.Contains(string(doc[i:]), end+"\n") {
			t.Errorf("docs/eval.md: %v, or it lacks the markers of %s", err, command)
		}
	}
}
