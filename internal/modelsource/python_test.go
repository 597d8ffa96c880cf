package modelsource

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// python runs huggingface_hub over a cache.
func python(t *testing.T, h *hub, verb, cache, revision string, files []string) (paths map[string]*string, scan string) {
	t.Helper()
	cmd := exec.Command("python3", append([]string{"testdata/hub.py", verb, cache, modelName, revision}, files...)...)
	cmd.Env = append(os.Environ(), "HF_ENDPOINT="+h.URL, "HF_HOME="+t.TempDir(), "HF_HUB_DISABLE_PROGRESS_BARS=1", "HF_HUB_DISABLE_TELEMETRY=1",
		"HF_HUB_DISABLE_IMPLICIT_TOKEN=1", "HF_TOKEN=", "HF_HUB_OFFLINE=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("this test needs python3 with huggingface_hub (`make test` brings it): %v\n%s", err, &stderr)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	scan = string(all["scan"])
	delete(all, "scan")
	paths = map[string]*string{}
	for name, raw := range all {
		var p *string
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		paths[name] = p
	}
	return paths, scan
}

// layout is a cache's tree without what only one of the two writes: locks, and a tag
// for backup tools.
func layout(t *testing.T, cache string) []string {
	return slices.DeleteFunc(tree(t, cache), func(s string) bool {
		return strings.HasPrefix(s, ".locks") || s == "CACHEDIR.TAG"
	})
}

// TestPythonHub: huggingface_hub finds what we fetched, we what it fetched, and both
// caches are the same tree.
func TestPythonHub(t *testing.T) {
	files := tinyFiles(t)
	h := newHub(t, files)
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	ours := h.settings(t)
	for _, revision := range []string{"main", "refs/pr/1"} {
		if revision != "main" {
			h.push(revision, files)
		}
		if _, err := find(t, ours, modelName, revision); err != nil {
			t.Fatal(err)
		}
	}
	for _, revision := range []string{"main", h.commits["refs/pr/1"]} {
		paths, scan := python(t, h, "cached", ours.Cache, revision, names)
		for _, name := range names {
			want := filepath.Join(ours.snapshot(modelName, h.commits[revision]), name)
			if p := paths[name]; p == nil || *p != want {
				t.Errorf("%s: huggingface_hub finds %v, want %s", name, p, want)
			}
		}
		if !strings.Contains(scan, `"warnings": []`) || !strings.Contains(scan, h.commits["main"]) {
			t.Errorf("a scan by huggingface_hub: %s", scan)
		}
	}
	theirs := *ours
	theirs.Cache = t.TempDir()
	for _, revision := range []string{"main", "refs/pr/1"} {
		python(t, h, "fetch", theirs.Cache, revision, names)
	}
	if got, want := layout(t, ours.Cache), layout(t, theirs.Cache); !slices.Equal(got, want) {
		t.Errorf("our cache\n%s\ntheirs\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	theirs.Offline = true
	p, err := find(t, &theirs, modelName, "refs/pr/1")
	if err != nil || p.Commit != h.commits["refs/pr/1"] {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := p.Load(Options{}); err != nil {
		t.Error(err)
	}
	// And into one cache: what they have we do not fetch again.
	theirs.Offline, h.seen = false, nil
	if _, err := find(t, &theirs, modelName, "main"); err != nil || len(h.seen) != 1 {
		t.Errorf("%v, asked %v", err, h.seen)
	}
}
