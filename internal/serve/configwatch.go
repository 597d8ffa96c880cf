package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"time"
)

// WatchOptions tune Config.Watch. The zero value is ready for use.
type WatchOptions struct {
	Every  time.Duration   // how often the file is read, default 1 s
	Now    <-chan struct{} // asks for a look at once (SIGHUP), may be nil
	Log    *slog.Logger
	Failed func(error) // called once per rejected content, for the counter
	Mended func()      // called when a rejected file is good again
}

// Watch reads the config file until ctx ends and calls apply, in its own
// goroutine, with every new content that passes all checks. A bad edit is logged
// once and changes nothing; so is a file that is gone.
//
// It reads the content instead of listening for file system events: a Kubernetes
// ConfigMap is swapped by two renames of symlinks, editors replace or truncate,
// network mounts tell nothing, and one small read a second costs less than the
// cases. A content is only judged when two looks agree, so that a half-written
// file is not taken for an edit.
func (c *Config) Watch(ctx context.Context, o WatchOptions, apply func(*Config)) {
	if c.Path == "" {
		return
	}
	if o.Every <= 0 {
		o.Every = time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	w := watcher{config: c, options: o, apply: apply, read: readConfig, applied: c.text, seen: c.text}
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.look(ctx, false)
		case <-o.Now:
			w.look(ctx, true)
		}
	}
}

// watcher is the state of one Watch: which content is in force, which was seen
// last, and which was judged last.
type watcher struct {
	config  *Config
	options WatchOptions
	apply   func(*Config)
	read    func(path string) ([]byte, error)

	applied, seen, judged []byte
	errText               string // of the judged content, "" = it passed
}

func (w *watcher) look(ctx context.Context, now bool) {
	text, err := w.load(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		w.reject(&ConfigError{Problems: []Problem{{File: w.config.Path, Found: err.Error()}}})
		return
	}
	settled := now || bytes.Equal(text, w.seen)
	w.seen = text
	switch {
	case !settled || bytes.Equal(text, w.judged) && w.errText != "":
		return
	case bytes.Equal(text, w.applied):
		w.good("as it was applied")
		w.judged = nil
		return
	}
	w.judged = text
	next, err := parseConfig(w.config.Path, text, w.config.overrides)
	if err != nil {
		w.reject(err)
		return
	}
	w.good("with a new content")
	w.applied = text
	if fixed := w.config.restartFor(next); len(fixed) > 0 {
		w.options.Log.Warn("config: these changes wait for a restart", "file", w.config.Path, "keys", fixed)
	}
	w.options.Log.Info("config: applied", "file", w.config.Path, "pods", len(next.Pods), "draining", next.draining(),
		"models", len(next.Models), "log_level", next.LogLevel)
	w.apply(next)
}

// draining counts the pods that get nothing new: whoever edits the file to empty
// one reads that it was heard.
func (c *Config) draining() (n int) {
	for i := range c.Pods {
		if c.Pods[i].Draining {
			n++
		}
	}
	return n
}

// load reads the file, and stops waiting for it when ctx ends: a file system that
// hangs must not keep the process from ending. The goroutine ends with its read,
// and until then no other is begun.
func (w *watcher) load(ctx context.Context) ([]byte, error) {
	type content struct {
		text []byte
		err  error
	}
	got := make(chan content, 1)
	go func() {
		text, err := w.read(w.config.Path)
		got <- content{text, err}
	}()
	select {
	case c := <-got:
		return c.text, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// good ends a rejection, and says so once.
func (w *watcher) good(how string) {
	if w.errText != "" {
		w.options.Log.Info("config: the file is good again, "+how, "file", w.config.Path)
		w.errText = ""
		if w.options.Mended != nil {
			w.options.Mended()
		}
	}
}

// maxLogged bounds the lines one edit leaves in the log.
const maxLogged = 10

// reject reports an error once, not at every look, and each problem on a line of
// its own.
func (w *watcher) reject(err error) {
	if err.Error() == w.errText {
		return
	}
	w.errText = err.Error()
	const text = "config: edit rejected, the old configuration stays"
	var list *ConfigError
	if !errors.As(err, &list) {
		list = &ConfigError{Problems: []Problem{{File: w.config.Path, Found: err.Error()}}}
	}
	for i, p := range list.Problems {
		if i == maxLogged {
			w.options.Log.Error(text, "further_problems", len(list.Problems)-i)
			break
		}
		w.options.Log.Error(text, "err", p.String())
	}
	if w.options.Failed != nil {
		w.options.Failed(err)
	}
}

// restartFor lists the keys of next that a running serve cannot change.
func (c *Config) restartFor(next *Config) []string {
	var keys []string
	add := func(key string, changed bool) {
		if changed {
			keys = append(keys, key)
		}
	}
	add("listen", c.Listen != next.Listen)
	add("limits", c.Limits != next.Limits)
	add("scrape", !reflect.DeepEqual(c.Scrape, next.Scrape))
	add("envoy", c.Envoy != next.Envoy)
	add("decisions", c.Decisions != next.Decisions)
	slices.Sort(keys)
	return keys
}
