package modelsource

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/encode"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

const soon = 5 * time.Millisecond

// watching starts a watcher whose changes come through a channel.
func watching(t *testing.T, p *Place, o Options) (*Watcher, chan Change) {
	t.Helper()
	changes := make(chan Change, 100)
	w, err := Watch(p, o, soon, func(c Change) { changes <- c })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w, changes
}

// next waits for a change.
func next(t *testing.T, changes chan Change) Change {
	t.Helper()
	select {
	case c := <-changes:
		return c
	case <-time.After(30 * time.Second):
		t.Fatal("no change was told")
		return Change{}
	}
}

// looks waits until the watcher has looked n times more.
func looks(w *Watcher, n int) { time.Sleep(time.Duration(n) * soon) }

// replace puts a file in the place of another in one step.
func replace(t *testing.T, at string, b []byte) {
	t.Helper()
	if err := errors.Join(os.WriteFile(at+".new", b, 0o644), os.Rename(at+".new", at)); err != nil {
		t.Fatal(err)
	}
}

var chatText = tokenizer.Text{Shape: tokenizer.Chat, Body: []byte(`{"messages":[{"role":"user","content":"Block barrel signal"}]}`)}

// TK-15: a file is replaced while requests are served. Each gets the ids of the old
// files or of the new ones.
func TestReload(t *testing.T) {
	p := folder(t, tinyFiles(t))
	w, changes := watching(t, p, Options{})
	ids := func() int {
		r, err := w.Tokenize(context.Background(), chatText)
		if err != nil {
			t.Error(err)
		}
		return len(r.IDs)
	}
	old := ids()
	stop := make(chan struct{})
	var all sync.WaitGroup
	seen := make([]map[int]int, 4)
	for g := range seen {
		seen[g] = map[int]int{}
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					seen[g][ids()]++
				}
			}
		})
	}
	w.Current().SetStanding(encode.Proven)
	replace(t, filepath.Join(p.Dir, "chat_template.jinja"), []byte("{{ bos_token }}{{ messages[0].content }}"))
	c := next(t, changes)
	if c.Err != nil || c.New.Template != "chat_template.jinja" || c.Old.Template != "tokenizer_config.json" || c.New.Digest == c.Old.Digest {
		t.Errorf("%+v", c)
	}
	fresh := ids()
	if r, err := w.Tokenize(context.Background(), chatText); err != nil || r.Status != tokenizer.Unverified {
		t.Errorf("the new model is taken for proven: %v, %v", r.Status, err)
	}
	close(stop)
	all.Wait()
	for _, m := range seen {
		for n := range m {
			if n != old && n != fresh {
				t.Errorf("a request got %d ids, the old files give %d, the new %d", n, old, fresh)
			}
		}
	}
	if fresh == old {
		t.Error("the template changes nothing: the test shows nothing")
	}
}

// A broken file changes nothing and is told once; the next good one is taken. So is
// one of a hash that is not configured.
func TestBrokenReload(t *testing.T) {
	files := tinyFiles(t)
	p := folder(t, files)
	first, err := p.Load(Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, changes := watching(t, p, Options{SHA256: first.Identity.Vocabulary.SHA256})
	at := filepath.Join(p.Dir, "tokenizer.json")
	for _, b := range [][]byte{files["tokenizer.json"][:1000], bytes.Replace(files["tokenizer.json"], []byte(`"<|turn|>"`), []byte(`"<|torn|>"`), 1), nil} {
		if b == nil {
			if err := os.Remove(at); err != nil {
				t.Fatal(err)
			}
		} else {
			replace(t, at, b)
		}
		if c := next(t, changes); c.Err == nil || c.Old.Digest != first.Identity.Digest {
			t.Errorf("%+v", c)
		}
		looks(w, 6)
		if len(changes) > 0 {
			t.Errorf("told again: %+v", <-changes)
		}
		if r, err := w.Tokenize(context.Background(), chatText); err != nil || len(r.IDs) == 0 {
			t.Errorf("the old model does not serve: %v", err)
		}
	}
	replace(t, at, files["tokenizer.json"])
	replace(t, filepath.Join(p.Dir, "chat_template.jinja"), []byte("x"))
	for c := next(t, changes); ; c = next(t, changes) {
		if c.Err == nil { // the first look may have fallen between the two
			break
		}
	}
}

// Touching a file, or writing the same again, is no change.
func TestSameContent(t *testing.T) {
	files := tinyFiles(t)
	p := folder(t, files)
	w, changes := watching(t, p, Options{})
	before := w.Current()
	replace(t, filepath.Join(p.Dir, "config.json"), files["config.json"])
	looks(w, 10)
	if w.Current() != before || len(changes) > 0 {
		t.Error("the same content was taken for another")
	}
}

// A branch that moves in the cache is followed, without asking the hub.
func TestFollowCache(t *testing.T) {
	h := newHub(t, tinyFiles(t))
	s := h.settings(t)
	p, err := find(t, s, modelName, "")
	if err != nil {
		t.Fatal(err)
	}
	_, changes := watching(t, p, Options{})
	files := tinyFiles(t)
	files["chat_template.jinja"] = []byte("{{ messages[0].content }}")
	commit := h.push("main", files)
	if _, err := find(t, s, modelName, ""); err != nil { // another process
		t.Fatal(err)
	}
	c := next(t, changes)
	if c.Err != nil || c.New.Commit != commit || c.Old.Commit == commit || !strings.HasSuffix(c.New.Dir, commit) {
		t.Errorf("%+v", c)
	}
}

func TestWatchRefuses(t *testing.T) {
	if _, err := Watch(folder(t, nil), Options{}, soon, nil); err == nil {
		t.Error("an empty folder is watched")
	}
}
