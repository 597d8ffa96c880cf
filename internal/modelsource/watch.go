package modelsource

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// Watcher keeps the encoder of a model that of its files. The old one serves until
// the new one is whole, and goes on when the new files cannot be used. Requests take
// either, never parts of both. Current and Tokenize may be called from any goroutine.
type Watcher struct {
	place   *Place
	options Options
	report  func(Change)
	current atomic.Pointer[Model]
	cancel  context.CancelFunc
	done    chan struct{}

	loaded, seen, tried string // states of the files: in use, at the last look, that failed
}

// Change is what a watcher did about files that changed.
type Change struct {
	Old, New Identity
	Err      error // why the new files are not used; told once for each state of them
}

var _ tokenizer.Provider = (*Watcher)(nil)

// defaultEvery is between two looks. A look is some ten stat calls.
const defaultEvery = 5 * time.Second

// Watch loads a model and looks at its files again and again, until Close. What
// changed is used at the second look that finds it the same, so that a file that is
// being written is left alone. Of a name of the hub, what the cache has at its
// revision is followed; the hub is not asked. report, which may be nil, is called
// from the watcher's goroutine.
func Watch(p *Place, o Options, every time.Duration, report func(Change)) (*Watcher, error) {
	w := &Watcher{place: p, options: o, report: report, done: make(chan struct{})}
	w.loaded = w.state(p)
	m, err := p.Load(o)
	if err != nil {
		return nil, err
	}
	w.seen = w.loaded
	w.current.Store(m)
	if every <= 0 {
		every = defaultEvery
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	go w.run(ctx, every)
	return w, nil
}

// Current is the model in use.
func (w *Watcher) Current() *Model { return w.current.Load() }

// Name implements tokenizer.Provider.
func (w *Watcher) Name() string { return w.Current().Name() }

// Tokenize implements tokenizer.Provider by the current model.
func (w *Watcher) Tokenize(ctx context.Context, t tokenizer.Text) (tokenizer.Result, error) {
	return w.Current().Tokenize(ctx, t)
}

// Close ends the watching, and waits for a load that is under way.
func (w *Watcher) Close() {
	w.cancel()
	<-w.done
}

func (w *Watcher) run(ctx context.Context, every time.Duration) {
	defer close(w.done)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			w.look()
		}
	}
}

// look reloads when the files are in another state than those in use, and were in it
// at the last look too.
func (w *Watcher) look() {
	place := w.place.again()
	state := w.state(place)
	settled := state == w.seen
	w.seen = state
	if !settled || state == w.loaded || state == w.tried {
		return
	}
	old := w.Current().Identity
	m, err := place.Load(w.options)
	if w.state(place) != state {
		return // changed meanwhile: parts of both may have been read
	}
	if err != nil {
		w.tried = state
		w.tell(Change{Old: old, New: Identity{Name: place.Name, Revision: place.Revision, Commit: place.Commit, Dir: place.Dir}, Err: err})
		return
	}
	w.loaded, w.tried, w.place = state, "", place
	if m.Identity.Digest == old.Digest && m.Identity.Override == old.Override && m.Identity.Dir == old.Dir {
		return // the same content under another time
	}
	w.current.Store(m)
	w.tell(Change{Old: old, New: m.Identity})
}

// state is that of the files at a place and of the template beside them.
func (w *Watcher) state(p *Place) string {
	if w.options.TemplateFile == "" {
		return p.state()
	}
	s, err := os.Stat(w.options.TemplateFile)
	if err != nil {
		return p.state() + err.Error()
	}
	return fmt.Sprintf("%s%d %d", p.state(), s.Size(), s.ModTime().UnixNano())
}

func (w *Watcher) tell(c Change) {
	if w.report != nil {
		w.report(c)
	}
}

// again is the place where the model is now: another revision may be in the cache.
func (p *Place) again() *Place {
	if p.settings == nil {
		return p
	}
	commit, err := p.settings.commitOf(p.Name, p.Revision)
	if err != nil || commit == p.Commit {
		return p
	}
	next := *p
	next.Commit, next.Dir, next.Stale = commit, p.settings.snapshot(p.Name, commit), nil
	return &next
}

// state describes the files without reading them: which there are, what they lead to,
// and the size and time of that. Two states are equal as long as nothing changed.
func (p *Place) state() string {
	names, err := p.files()
	if err != nil {
		return "unreadable: " + err.Error()
	}
	var b strings.Builder
	fmt.Fprintln(&b, p.Dir)
	for _, name := range names {
		at := filepath.Join(p.Dir, filepath.FromSlash(name))
		target, err := filepath.EvalSymlinks(at)
		if err != nil {
			fmt.Fprintln(&b, name, err)
			continue
		}
		info, err := os.Stat(target)
		if err != nil {
			fmt.Fprintln(&b, name, err)
			continue
		}
		fmt.Fprintln(&b, name, target, info.Size(), info.ModTime().UnixNano(), fileNumber(info))
	}
	return b.String()
}
