package modelsource

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func find(t *testing.T, s *Settings, name, revision string) (*Place, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return s.Find(ctx, name, revision)
}

func kindOf(err error) (Kind, bool) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind, true
	}
	return 0, false
}

// tree lists what is in a cache, links with their targets.
func tree(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if target, err := os.Readlink(path); err == nil {
			rel += " -> " + target
		}
		list = append(list, rel)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestFetch(t *testing.T) {
	files := tinyFiles(t)
	h := newHub(t, files)
	h.token = "hf_secret"
	s := h.settings(t)
	s.Token = "hf_secret"
	var told []Progress
	s.Progress = func(p Progress) { told = append(told, p) }
	p, err := find(t, s, modelName, "")
	if err != nil {
		t.Fatal(err)
	}
	commit := h.commits["main"]
	root := filepath.Join(s.Cache, "models--acme--tiny")
	want := []string{"refs/main"}
	for name, b := range files {
		want = append(want, "blobs/"+etagFor(name, b), "snapshots/"+commit+"/"+name+" -> "+strings.Repeat("../", 2+strings.Count(name, "/"))+"blobs/"+etagFor(name, b))
		if got, err := os.ReadFile(filepath.Join(p.Dir, name)); err != nil || string(got) != string(b) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	slices.Sort(want)
	got := tree(t, root)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the cache has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if ref, _ := os.ReadFile(filepath.Join(root, "refs", "main")); string(ref) != commit {
		t.Errorf("refs/main is %q", ref)
	}
	if h.cdnToken {
		t.Error("the token went to another host")
	}
	if len(told) < len(files) || told[len(told)-1].Done == 0 {
		t.Errorf("progress: %v", told)
	}
	if p.Commit != commit || p.Revision != "main" || p.Stale != nil {
		t.Errorf("%+v", p)
	}
	// Again: one question, nothing fetched.
	h.seen = nil
	if _, err := find(t, s, modelName, "main"); err != nil || len(h.seen) != 1 {
		t.Errorf("second time: %v, %v", err, h.seen)
	}
	// A branch that moved brings what changed alone.
	next := maps.Clone(files)
	next["chat_template.jinja"] = []byte("{{ messages[0].content }}")
	h.push("main", next)
	h.seen = nil
	p, err = find(t, s, modelName, "main")
	if err != nil || p.Commit == commit {
		t.Fatal(err, p)
	}
	if m, err := p.Load(Options{}); err != nil || m.Identity.Template != "chat_template.jinja" || m.Identity.Commit != p.Commit {
		t.Errorf("%+v, %v", m, err)
	}
	if h.tries["cdn"] != 1 {
		t.Errorf("the vocabulary was fetched %d times", h.tries["cdn"])
	}
}

// A hub that cannot be reached does no harm to who has the files.
func TestCacheAlone(t *testing.T) {
	h := newHub(t, tinyFiles(t))
	s := h.settings(t)
	tag := h.push("releases/v1", tinyFiles(t))
	for _, rev := range []string{"main", "releases/v1"} {
		if _, err := find(t, s, modelName, rev); err != nil {
			t.Fatal(err)
		}
	}
	h.seen = nil
	offline := *s
	offline.Offline = true
	if p, err := find(t, &offline, modelName, ""); err != nil || p.Commit != h.commits["main"] || p.Stale != nil || len(h.seen) > 0 {
		t.Errorf("offline: %+v, %v, asked %v", p, err, h.seen)
	}
	for _, rev := range []string{"releases/v1", tag} {
		if p, err := find(t, &offline, modelName, rev); err != nil || p.Commit != tag {
			t.Errorf("%s: %+v, %v", rev, p, err)
		}
	}
	for name, rev := range map[string]string{modelName: "v2", "acme/none": "main"} {
		_, err := find(t, &offline, name, rev)
		if kind, _ := kindOf(err); kind != Missing || !strings.Contains(err.Error(), "HF_HUB_OFFLINE") {
			t.Errorf("%s at %s: %v", name, rev, err)
		}
	}
	down := *s
	down.Endpoint, down.Retries = "http://127.0.0.1:1", -1
	if p, err := find(t, &down, modelName, "main"); err != nil || p.Stale == nil || p.Commit != h.commits["main"] {
		t.Errorf("unreachable: %+v, %v", p, err)
	}
	broken := *s
	broken.Offline = true
	if err := os.WriteFile(s.ref(modelName, "main"), []byte("../../../etc"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := find(t, &broken, modelName, "main"); err == nil || !strings.Contains(err.Error(), "does not hold a commit") {
		t.Errorf("a ref that leads out: %v", err)
	}
}

// Many that fetch at once end up with one whole cache.
func TestFetchAtOnce(t *testing.T) {
	files := tinyFiles(t)
	h := newHub(t, files)
	s := h.settings(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := find(t, s, modelName, ""); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := tree(t, s.Cache); len(got) != 2*len(files)+1 {
		t.Errorf("the cache has %v", got)
	}
}

// A link to nothing, as a pruned cache has, is mended.
func TestBrokenLink(t *testing.T) {
	h := newHub(t, tinyFiles(t))
	s := h.settings(t)
	p, err := find(t, s, modelName, "")
	if err != nil {
		t.Fatal(err)
	}
	blobs := filepath.Join(s.Cache, "models--acme--tiny", "blobs")
	if err := os.RemoveAll(blobs); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(p.Dir, "config.json")
	if err := errors.Join(os.Remove(link), os.Symlink("../../blobs/gone", link)); err != nil {
		t.Fatal(err)
	}
	if p, err = find(t, s, modelName, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Load(Options{}); err != nil {
		t.Error(err)
	}
}

func TestNames(t *testing.T) {
	for name, good := range map[string]bool{
		"gpt2": true, "meta-llama/Llama-3.3-70B-Instruct": true, "a/b.c_d-e": true, "0/1": true,
		"": false, "/": false, "a/": false, "/a": false, "a/b/c": false, "..": false, "a/..": false, "../a": false, "a..b": false, "a--b": false,
		"a/b.git": false, "-a": false, "a-": false, ".a/b": false, "a b": false, "a\nb": false, "a\\b": false, "ä": false, "a%2fb": false,
		strings.Repeat("a", 97): false, "a/b?x": false, "a/b#x": false, "http://a/b": false, "a\x00": false,
	} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("name %q: %v", name, err)
		}
	}
	for rev, good := range map[string]bool{
		"main": true, "v1.0": true, "refs/pr/3": true, "feature/x_y": true, "0123456789abcdef0123456789abcdef01234567": true,
		"": false, "..": false, "../x": false, "a/../b": false, "/a": false, "a//b": false, "a/": false, "a b": false, "-x": false, "a?b": false, "a/.b": false, "a%2e": false,
		strings.Repeat("a", 300): false,
	} {
		if err := CheckRevision(rev); (err == nil) != good {
			t.Errorf("revision %q: %v", rev, err)
		}
	}
}

// FuzzNames: no name or revision that passes leads out of the cache.
func FuzzNames(f *testing.F) {
	f.Add("a/b", "refs/pr/3")
	f.Add("..", "a/../../b")
	f.Fuzz(func(t *testing.T, name, rev string) {
		if CheckName(name) != nil || CheckRevision(rev) != nil {
			return
		}
		s := &Settings{Cache: "/cache"}
		root := "/cache/models--" + strings.ReplaceAll(name, "/", "--") + "/"
		if got := s.ref(name, rev); !strings.HasPrefix(got, root+"refs/") || got == root+"refs/" {
			t.Errorf("%q at %q: %s", name, rev, got)
		}
	})
}

func TestFromEnv(t *testing.T) {
	home := t.TempDir()
	hf := filepath.Join(home, "hf")
	if err := errors.Join(os.MkdirAll(filepath.Join(hf), 0o755), os.WriteFile(filepath.Join(hf, "token"), []byte("hf_file\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env   map[string]string
		cache string
		token string
		off   bool
	}{
		{nil, home + "/.cache/huggingface/hub", "", false},
		{map[string]string{"XDG_CACHE_HOME": "/x"}, "/x/huggingface/hub", "", false},
		{map[string]string{"HF_HOME": hf, "XDG_CACHE_HOME": "/x"}, hf + "/hub", "hf_file", false},
		{map[string]string{"HF_HOME": "~/hf", "HF_HUB_OFFLINE": "yes"}, hf + "/hub", "hf_file", true},
		{map[string]string{"HF_HOME": "$HOME/hf", "HF_HUB_CACHE": "/c", "HF_TOKEN": " hf_env\n"}, "/c", "hf_env", false},
		{map[string]string{"HF_HOME": hf, "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1", "TRANSFORMERS_OFFLINE": "1"}, hf + "/hub", "", true},
		{map[string]string{"HF_TOKEN_PATH": hf + "/token", "HUGGINGFACE_HUB_CACHE": "/old", "HF_HUB_OFFLINE": "0"}, "/old", "hf_file", false},
		{map[string]string{"HF_TOKEN": "two\nlines"}, home + "/.cache/huggingface/hub", "", false},
	} {
		s, err := FromEnv(func(k string) string {
			if k == "HOME" {
				return home
			}
			return c.env[k]
		})
		if err != nil || s.Cache != c.cache || s.Token != c.token || s.Offline != c.off || s.Endpoint != defaultEndpoint {
			t.Errorf("%v: %+v, %v", c.env, s, err)
		}
	}
	// Without a home there is no cache: not one wherever the process was started.
	s, err := FromEnv(func(string) string { return "" })
	if err != nil || s.Cache != "" {
		t.Fatalf("without HOME: %+v, %v", s, err)
	}
	if _, err := find(t, s, modelName, ""); err == nil || !strings.Contains(err.Error(), "HF_HOME") {
		t.Errorf("without HOME: %v", err)
	}
	if s, err := FromEnv(func(k string) string { return map[string]string{"HF_HOME": hf}[k] }); err != nil || s.Cache != hf+"/hub" || s.Token != "hf_file" {
		t.Errorf("HF_HOME without HOME: %+v, %v", s, err)
	}
	for _, bad := range []string{"ftp://x", "x", "http://", "https://user:pw@x", "https://x?y"} {
		if _, err := FromEnv(func(k string) string { return map[string]string{"HF_ENDPOINT": bad}[k] }); err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("HF_ENDPOINT=%s: %v", bad, err)
		}
	}
}
