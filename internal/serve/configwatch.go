package serve

import (
	"bytes"
	"context"
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
	w := watcher{config: c, options: o, apply: apply, applied: c.text, seen: c.text}
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.look(false)
		case <-o.Now:
			w.look(true)
		}
	}
}

// watcher is the state of one Watch: which content is in force, which was seen
// last, and which was judged last.
type watcher struct {
	config  *Config
	options WatchOptions
	apply   func(*Config)

	applied, seen, judged []byte
	errText               string // of the judged content, "" = it passed
}

func (w *watcher) look(now bool) {
	text, err := readConfig(w.config.Path)
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
		if w.errText != "" {
			w.options.Log.Info("config: the edit was taken back", "file", w.config.Path)
			w.errText, w.judged = "", nil
		}
		return
	}
	w.judged = text
	next, err := parseConfig(w.config.Path, text, w.config.overrides)
	if err != nil {
		w.reject(err)
		return
	}
	w.errText, w.applied = "", text
	if fixed := w.config.restartFor(next); len(fixed) > 0 {
		w.options.Log.Warn("config: these changes wait for a restart", "file", w.config.Path, "keys", fixed)
	}
	w.options.Log.Info("config: applied", "file", w.config.Path, "pods", len(next.Pods), "models", len(next.Models))
	w.apply(next)
}

// reject reports an error once, not at every look.
func (w *watcher) reject(err error) {
	if err.Error() == w.errText {
		return
	}
	w.errText = err.Error()
	w.options.Log.Error("config: edit rejected, the old configuration stays", "err", err)
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
	slices.Sort(keys)
	return keys
}
