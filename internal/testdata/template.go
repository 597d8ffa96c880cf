package testdata

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TemplateModule is the folder of the templates that the library of templates
// tests itself with, "" without the module.
var TemplateModule = sync.OnceValue(func() string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ardanlabs/jinja").Output()
	if err != nil {
		return ""
	}
	return filepath.Join(strings.TrimSpace(string(out)), "testdata", "templates")
})

// Template reads a chat template: ours, or the library's.
func Template(tb testing.TB, name string) string {
	tb.Helper()
	for _, dir := range append(Dirs(tb, "templates"), TemplateModule()) {
		if b, err := os.ReadFile(filepath.Join(dir, name+".jinja")); err == nil {
			return string(b)
		}
	}
	tb.Fatalf("template %s is in neither testdata/templates nor the module github.com/ardanlabs/jinja", name)
	return ""
}
