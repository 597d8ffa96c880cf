package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/modelsource"
	"github.com/eppctl/eppctl/internal/testdata"
)

// TestTokenizers: what serve would load is loaded, and what it could not FAILs.
func TestTokenizers(t *testing.T) {
	model := filepath.Join(testdata.Dirs(t, "engines")[0], "models", "tiny-llama")
	cache := t.TempDir()
	const commit = "0123456789abcdef0123456789abcdef01234567"
	repository := filepath.Join(cache, "models--acme--cached")
	for _, dir := range []string{"refs", "snapshots"} {
		if err := os.MkdirAll(filepath.Join(repository, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(repository, "refs", "main"), []byte(commit), 0o600); err != nil {
		t.Fatal(err)
	}
	whole, err := filepath.Abs(model)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(whole, filepath.Join(repository, "snapshots", commit)); err != nil {
		t.Fatal(err)
	}
	hub := "http://" + testdata.Deaf(t)
	const advice = "models[].tokenizer.source"
	for _, c := range []struct {
		name       string
		source     Tokenizer
		configOnly bool
		row        string
		hint       string // "" = all is well
	}{
		{"a folder", Tokenizer{Source: model}, true, "ok      -    tokenizer  m: tokenizer.json of " + model, ""},
		{"no folder", Tokenizer{Source: "/nonexistent/model"}, true, "FAIL    -    tokenizer  m: model folder /nonexistent/model; there is no such folder; name a folder", advice},
		{"no folder, beside pods", Tokenizer{Source: "/nonexistent/model"}, false, "FAIL    -    tokenizer  m: model folder", advice},
		{"an empty folder", Tokenizer{Source: cache}, true, "FAIL    -    tokenizer  m: model folder " + cache, advice},
		{"another vocabulary", Tokenizer{Source: model, Options: modelsource.Options{SHA256: strings.Repeat("0", 64)}}, true, "FAIL    -    tokenizer  m: ", advice},
		{"a name that nobody has asked for", Tokenizer{Source: "acme/other"}, true, "skip    -    tokenizer  m: not in the cache, and --config-only does not ask the hub", ""},
		{"a name, without a hub", Tokenizer{Source: "acme/other"}, false, "FAIL    -    tokenizer  m: the hub at " + hub, advice},
		{"a cached name", Tokenizer{Source: "acme/cached"}, true, "ok      -    tokenizer  m: tokenizer.json of " + cache, ""},
		{"a cached name, without a hub", Tokenizer{Source: "acme/cached"}, false, ", from the cache: the hub at " + hub, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.source.Model = "m"
			command := &Command{Format: "table", ConfigOnly: c.configOnly, Hub: func() (*modelsource.Settings, error) {
				return &modelsource.Settings{Endpoint: hub, Cache: cache}, nil
			}}
			text, err := runConfig(t, command, Config{Tokenizers: []Tokenizer{c.source}})
			if !strings.Contains(text, c.row) || (err != nil) != (c.hint != "") || err != nil && !strings.Contains(err.Hint, c.hint) {
				t.Errorf("%v\n%s; want %q", err, text, c.row)
			}
		})
	}
}
