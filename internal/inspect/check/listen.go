package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// Listening is how event streams are heard.
type Listening struct {
	Source string // from where, in words
	// Past: a recording is heard. Its own times count, and nobody can be asked to
	// send a request.
	Past bool
	// Run hands over what the streams bring, until it has heard enough or ctx ends,
	// which is no error. A usage error leaves no report.
	Run func(ctx context.Context, take func(*recording.Record)) error
	// Before says what a listener that has been there for longer, a running serve,
	// had of each stream; nil = there is none.
	Before func(ctx context.Context) ([]Before, error)
}

// Listened says what a report rests on.
type Listened struct {
	Source     string  `json:"source"`
	From       *string `json:"from"` // RFC 3339; null: nothing came, of a recording
	To         *string `json:"to"`
	DurationMs int64   `json:"duration_ms"`
	Streams    int     `json:"streams"`
	Messages   int     `json:"messages"` // live ones, and
	Replayed   int     `json:"replayed"` // those of replay ports
}

func (l *Listened) String() string {
	text := fmt.Sprintf("%s to %s: %s of %s", seconds(time.Duration(l.DurationMs)*time.Millisecond), l.Source,
		out.Plural(l.Messages, "message"), out.Plural(l.Streams, "stream"))
	if l.Replayed > 0 {
		text += fmt.Sprintf(", and %d replayed", l.Replayed)
	}
	return text
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// hearing sorts records to the streams they are of.
type hearing struct {
	*Listening
	config   Config
	first    []feed.Probed // before the listening, and
	probed   []feed.Probed // after it, of those that it is worth asking again
	samples  []*telemetry.Sample
	before   []Before
	specs    []pod.Spec
	streams  []*stream // in the order in which they appeared
	of       map[streamID]*stream
	from, to int64 // ns; of a recording by its records, 0 = none
}

type streamID struct {
	pod  string
	rank int
}

// listen hears the streams, and looks again at what was not well, or is not any
// more: a report tells how things stand when it is printed.
func (c *Command) listen(ctx context.Context, config Config, probed []feed.Probed) (*hearing, error) {
	h := newHearing(c.Listen, config, probed)
	if h.Before != nil {
		var err error
		if h.before, err = h.Listening.Before(ctx); err != nil {
			return h, err
		}
	}
	if !h.Past {
		h.from = time.Now().UnixNano()
	}
	err := h.Run(ctx, h.take)
	if !h.Past {
		h.to = time.Now().UnixNano()
	}
	c.look(context.WithoutCancel(ctx), h) // who ends the listening wants its result
	h.sort()
	return h, err
}

// newHearing knows the pods as completed by the probes, or as configured.
func newHearing(l *Listening, config Config, probed []feed.Probed) *hearing {
	h := &hearing{Listening: l, config: config, first: probed, specs: slices.Clone(config.Pods), of: map[streamID]*stream{}}
	for i, p := range probed {
		h.specs[i] = p.Spec
	}
	if h.config.Fleet == nil {
		h.config.Fleet = config.Pods
	}
	return h
}

// look reads the metrics pages again, and probes those pods once more of which
// something was, or is, not well.
func (c *Command) look(ctx context.Context, h *hearing) {
	h.probed, h.samples = slices.Clone(h.first), make([]*telemetry.Sample, len(h.first))
	c.each(ctx, len(h.first), func(ctx context.Context, i int) {
		p := &h.probed[i]
		if p.Sample != nil {
			h.samples[i], _ = c.Prober.Sample(ctx, p.Spec) // nil then: nothing is known of meanwhile
		}
		if !bad(p.Facts) && !h.down(p.Spec.Name) && (p.Sample == nil || h.samples[i] != nil) {
			return
		}
		*p = c.Prober.Probe(ctx, h.config.Pods[i])
		if h.samples[i] == nil {
			h.samples[i] = p.Sample
		}
	})
	for i, p := range h.probed {
		h.specs[i] = p.Spec
	}
	for _, s := range h.streams {
		if i := h.pod(s.Pod.Name); i >= 0 {
			s.Pod = h.specs[i]
		}
	}
}

// bad reports a fact that FAILs.
func bad(facts []feed.Fact) bool {
	return slices.ContainsFunc(facts, func(f feed.Fact) bool { return !f.OK && !f.Skipped })
}

// down reports that a stream of the pod is not connected.
func (h *hearing) down(name string) bool {
	return slices.ContainsFunc(h.streams, func(s *stream) bool { return s.Pod.Name == name && s.down != "" })
}

// ListenFor is how long live streams are heard when nobody says: an engine under
// load publishes many times a second.
const ListenFor = 10 * time.Second

// maxStreams bounds the streams that a recording can make.
const maxStreams = 2 * pod.MaxMembers

func (h *hearing) take(r *recording.Record) {
	if h.Past && r.At > 0 {
		if h.from == 0 {
			h.from = r.At
		}
		h.from, h.to = min(h.from, r.At), max(h.to, r.At)
	}
	if r.Pod == nil || !r.Pod.IsStream() { // pages and specs are of a pod as a whole
		return
	}
	id := streamID{r.Pod.Name, r.Pod.Rank}
	s := h.of[id]
	if s == nil {
		if len(h.streams) == maxStreams {
			return
		}
		s = newStream(h.spec(r.Pod), r.Pod.Rank)
		h.of[id] = s
		h.streams = append(h.streams, s)
	}
	s.Record(r)
}

// sort puts the streams in the order of the configuration.
func (h *hearing) sort() {
	place := func(s *stream) int {
		if i := h.pod(s.Pod.Name); i >= 0 {
			return i
		}
		return len(h.specs)
	}
	slices.SortStableFunc(h.streams, func(a, b *stream) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.Pod.Name, b.Pod.Name), cmp.Compare(a.Rank, b.Rank))
	})
}

// pod is the place of a pod in the configuration, -1 = it is not there.
func (h *hearing) pod(name string) int {
	return slices.IndexFunc(h.specs, func(p pod.Spec) bool { return p.Name == name })
}

// spec is the pod's of the configuration, or as much as the record says.
func (h *hearing) spec(p *recording.Pod) pod.Spec {
	if i := h.pod(p.Name); i >= 0 {
		return h.specs[i]
	}
	engine, _ := pod.ParseEngine(p.Engine) // unknown to us is unknown
	return pod.Spec{Name: p.Name, Model: p.Model, Engine: engine, Ranks: p.Ranks}
}

// messages counts what came in all.
func (h *hearing) messages() (live, replayed int) {
	for _, s := range h.streams {
		live += s.messages
		replayed += s.replay.batches
	}
	return live, replayed
}

// listened sums up what was heard.
func (h *hearing) listened() *Listened {
	l := &Listened{Source: out.Clean(h.Source), DurationMs: (h.to - h.from) / int64(time.Millisecond), Streams: len(h.streams)}
	l.Messages, l.Replayed = h.messages()
	if h.from > 0 {
		from, to := stamp(h.from), stamp(h.to)
		l.From, l.To = &from, &to
	}
	return l
}

func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

// witness is what is known of a stream beside what it sent.
func (h *hearing) witness(s *stream) witness {
	w := witness{Computed: -1, Fleet: h.config.Fleet, Past: h.Past, From: h.from, Lasted: time.Duration(h.to - h.from)}
	if i := slices.IndexFunc(h.before, func(b Before) bool { return b.Pod == s.Pod.Name && b.Rank == s.Rank }); i >= 0 {
		w.Before = &h.before[i]
	}
	if i := h.pod(s.Pod.Name); i >= 0 && i < len(h.probed) {
		w.engine(h.first[i].Sample, h.samples[i])
		// Without an event source there is no stream to have failed.
		w.portFaulty = faulty(h.probed[i].Findings, s.endpoint()) || !h.probed[i].Spec.HasEvents()
		w.portWell = !w.portFaulty && slices.ContainsFunc(h.probed[i].Facts, func(f feed.Fact) bool { return f.What == "events" && f.OK })
	}
	return w
}
