package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A page names no page that is not there, and shows no Go-isms.
func TestManPages(t *testing.T) {
	files := sheets(t)
	pages := 0
	for name, text := range files {
		if !strings.HasPrefix(name, "man/") {
			continue
		}
		pages++
		for _, ref := range regexp.MustCompile(`\\fB([^\n]*)\\fR\(1\)`).FindAllSubmatch(text, -1) {
			if page := strings.ReplaceAll(string(ref[1]), `\-`, "-"); files["man/"+page+".1"] == nil {
				t.Errorf("%s refers to %s(1), which does not exist", name, page)
			}
		}
		for _, noise := range []string{"[=false]", "[command]", "[flags]", "--strict "} {
			if bytes.Contains(text, []byte(noise)) {
				t.Errorf("%s shows %q", name, noise)
			}
		}
		for _, part := range []string{".SH EXIT STATUS\n.TP\n0\ndone\n", ".SH OPTIONS\n", `\fB\-h\fR, \fB\-\-help\fR`, ".SH SEE ALSO\n\\fBeppctl"} {
			if !bytes.Contains(text, []byte(part)) {
				t.Errorf("%s is without %q", name, part)
			}
		}
		if name != "man/eppctl.1" && !bytes.Contains(text, []byte(".SH EXAMPLES\n.EX\n")) {
			t.Errorf("%s has no examples", name)
		}
	}
	if pages < 10 {
		t.Errorf("only %d pages", pages)
	}
	if !bytes.Contains(files["man/eppctl.1"], []byte(`\fBeppctl COMMAND [FLAG]...\fR`)) {
		t.Error("the synopsis of eppctl(1) is not eppctl COMMAND")
	}
}

// Both programs that show man pages read them without a warning.
func TestManPagesRender(t *testing.T) {
	for _, reader := range []struct {
		program, pkg string
		args         []string
	}{{"mandoc", "mandoc", []string{"-T", "lint", "-W", "warning"}}, {"groff", "groff-base", []string{"-man", "-T", "utf8", "-ww", "-z"}}} {
		install := exec.Command(filepath.Join(repository, "scripts/debian.sh"), reader.program, reader.pkg)
		install.Stderr = os.Stderr
		path, err := install.Output()
		if err != nil {
			t.Fatalf("this test needs %s: %v", reader.program, err)
		}
		pages, err := filepath.Glob(filepath.Join(repository, "man", "*.1"))
		if err != nil || len(pages) == 0 {
			t.Fatalf("%d pages, %v", len(pages), err)
		}
		text, err := exec.Command(strings.TrimSpace(string(path)), append(reader.args, pages...)...).CombinedOutput()
		if err != nil || len(text) > 0 {
			t.Errorf("%s: %v\n%s", reader.program, err, text)
		}
	}
}

func TestRoffText(t *testing.T) {
	for text, want := range map[string]string{
		".TH":            `\&.TH`,
		"'x":             `\&'x`,
		`a\b --no-x`:     `a\eb \-\-no\-x`,
		"é … \U0001F600": `\[u00E9] \[u2026] \[u1F600]`,
	} {
		if got := roffText(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
