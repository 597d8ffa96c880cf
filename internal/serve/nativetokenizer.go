package serve

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/encode"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/modelsource"
)

// Waits before a tokenizer that could not be loaded is tried again: its folder may
// be filled later, the hub may be reached again.
const firstRetry, lastRetry = 10 * time.Second, 5 * time.Minute

// engineLook is between two looks at the engines of a model's pods, which are not
// known when a process starts.
const engineLook = time.Second

// nativeTokenizer is the provider "native" of one model. Its files are read by a
// goroutine of its own, so that nobody waits for them: until they are there, and
// when they cannot be used, it says so and the next provider is asked. Close ends
// the goroutine; the other methods may be called from any.
type nativeTokenizer struct {
	config  Tokenizer
	from    func() (*modelsource.Settings, error)
	engine  func() chat.Engine  // whose chats, now
	release func() chat.Release // of these engines, now
	model   string
	log     *slog.Logger
	turn    chan struct{} // one loads at a time: that takes a processor for a second
	state   atomic.Pointer[nativeState]
	settled chan struct{} // closed after the first attempt
	doubted atomic.Uint64 // requests that came while events spoke against the ids
	cancel  context.CancelFunc
	done    chan struct{}
}

// nativeState is how far the files are: a watcher, or why there is none.
type nativeState struct {
	watcher *modelsource.Watcher
	why     reason.Code
	detail  string
}

// notReady is why a native tokenizer is not asked. It holds nothing of a request.
type notReady struct {
	why    reason.Code
	detail string
}

func (e *notReady) Error() string { return string(e.why) + ": " + e.detail }

func startNative(model string, c Tokenizer, from func() (*modelsource.Settings, error), engine func() chat.Engine, release func() chat.Release, turn chan struct{}, log *slog.Logger) *nativeTokenizer {
	ctx, cancel := context.WithCancel(context.Background())
	n := &nativeTokenizer{
		config: c, from: from, engine: engine, release: release, model: model, log: log.With("model", model, "source", c.Source), turn: turn,
		settled: make(chan struct{}), cancel: cancel, done: make(chan struct{}),
	}
	n.state.Store(&nativeState{why: reason.Loading, detail: "the files are being read"})
	go n.run(ctx)
	return n
}

// Name implements tokenizer.Provider.
func (n *nativeTokenizer) Name() string { return byNative }

// Tokenize implements tokenizer.Provider.
func (n *nativeTokenizer) Tokenize(ctx context.Context, t tokenizer.Text) (tokenizer.Result, error) {
	s := n.state.Load()
	if s.watcher == nil {
		return tokenizer.Result{}, &notReady{s.why, s.detail}
	}
	return s.watcher.Tokenize(ctx, t)
}

// current is the loaded model, or nil.
func (n *nativeTokenizer) current() *modelsource.Model {
	if s := n.state.Load(); s.watcher != nil {
		return s.watcher.Current()
	}
	return nil
}

// probation: of requests whose ids events alone speak against, one in so many is routed
// by them all the same. Nothing else can show that they are right again. At ten
// requests a second the 256 judged ones that it takes are there in a quarter of an hour.
const probation = 32

// refuted says what was found against the ids made here, "" = nothing.
func (n *nativeTokenizer) refuted() string {
	m := n.current()
	if m == nil {
		return ""
	}
	s := m.Standing()
	if s == encode.Doubted && n.doubted.Add(1)%probation == 0 {
		return ""
	}
	return against[s]
}

// against says it in words.
var against = map[encode.Standing]string{
	encode.Refuted: "an engine makes other ids of a probe",
	encode.Doubted: "engines announce other ids than requests were routed by",
}

// chatsDiffer says why an engine's /tokenize makes other ids of a chat than the engine
// computes, "" = it does not, or the files are not read yet.
func (n *nativeTokenizer) chatsDiffer() string {
	if m := n.current(); m != nil && m.Identity.TokenizeDiffers {
		return "the engine's /tokenize takes a Harmony chat for one of the template"
	}
	return ""
}

// Close ends the loading and watching, and waits for a load that is under way.
func (n *nativeTokenizer) Close() {
	n.cancel()
	<-n.done
}

// wait returns when the first attempt to load has ended, or ctx.
func (n *nativeTokenizer) wait(ctx context.Context) {
	select {
	case <-n.settled:
	case <-ctx.Done():
	}
}

func (n *nativeTokenizer) run(ctx context.Context) {
	defer close(n.done)
	said := ""
	pause := firstRetry
	for first := true; ; first = false {
		engine := n.engine()
		w, err := n.load(ctx, engine)
		if ctx.Err() != nil {
			if w != nil {
				w.Close()
			}
			n.drop()
			return
		}
		if err == nil {
			n.drop()
			n.state.Store(&nativeState{watcher: w})
			n.loaded(w.Current().Identity)
			pause = firstRetry
		} else {
			n.drop()
			n.state.Store(&nativeState{why: reason.Unloadable, detail: err.Error()})
			if text := err.Error(); text != said {
				n.log.Warn("the native tokenizer cannot be loaded; the next provider is asked", "reason", reason.Unloadable, "err", err, "retry_in", pause)
				said = text
			}
		}
		if first {
			close(n.settled)
		}
		if err == nil {
			if n.follow(ctx, engine); ctx.Err() != nil {
				n.drop()
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, lastRetry)
	}
}

// drop ends the watching of what was loaded.
func (n *nativeTokenizer) drop() {
	if s := n.state.Load(); s.watcher != nil {
		s.watcher.Close()
	}
}

// follow returns when the model's engine is another one than was taken it for, whose
// chats are prepared otherwise, or ctx ends.
func (n *nativeTokenizer) follow(ctx context.Context, engine chat.Engine) {
	t := time.NewTicker(engineLook)
	defer t.Stop()
	for n.engine() == engine {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

func (n *nativeTokenizer) load(ctx context.Context, engine chat.Engine) (*modelsource.Watcher, error) {
	settings, err := n.from()
	if err != nil {
		return nil, err
	}
	place, err := settings.Find(ctx, n.config.Source, n.config.Revision)
	if err != nil {
		return nil, err
	}
	if place.Stale != nil {
		n.log.Warn("the hub could not be asked; the cached tokenizer is taken", "err", place.Stale)
	}
	o, err := n.config.Options(engine)
	if err != nil {
		return nil, err
	}
	o.Release = n.release
	select { // behind Find: a hub that hangs holds up no other model
	case n.turn <- struct{}{}:
		defer func() { <-n.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return modelsource.Watch(place, o, 0, n.changed)
}

// Options are what a section says about the engine.
func (t *Tokenizer) Options(engine chat.Engine) (modelsource.Options, error) {
	o := modelsource.Options{
		Engine: engine, SHA256: t.SHA256, TokenizerMode: t.Mode, Cache: int(t.Cache),
		TemplateFile: t.ChatTemplate, ContentFormat: chat.FormatOf(t.ContentFormat), StartDate: t.StartDate,
	}
	if t.Kwargs != "" {
		o.Kwargs = []byte(t.Kwargs)
	}
	if t.TimeZone != "" {
		zone, err := time.LoadLocation(t.TimeZone)
		if err != nil {
			return o, err
		}
		o.Now = func() time.Time { return time.Now().In(zone) }
	}
	if o.Cache == 0 {
		o.Cache = defaultTokenizerCache
	}
	if t.Chat == byNative && t.Mode == "" {
		o.TokenizerMode = "hf" // what auto would choose does not count
	}
	return o, nil
}

func (n *nativeTokenizer) loaded(id modelsource.Identity) {
	log := n.log.With("file", id.Vocabulary.Name, "sha256", id.Vocabulary.SHA256, "split", id.Split, "took", id.Took.Round(time.Millisecond))
	switch {
	case id.NoChat != "" && n.config.Chat != byRender && n.config.Chat != byTokenize:
		log.Warn("the native tokenizer is loaded, for completions alone: chats go to the next provider", "why", id.NoChat)
	default:
		log.Info("the native tokenizer is loaded", "template", id.Template)
	}
}

func (n *nativeTokenizer) changed(c modelsource.Change) {
	if c.Err != nil {
		n.log.Warn("the tokenizer's files have changed and cannot be used; the old ones serve on", "err", c.Err)
		return
	}
	n.loaded(c.New)
}
