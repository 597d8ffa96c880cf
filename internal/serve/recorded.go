package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Recorded explains requests from a recording: the fleet that the feed would keep
// is played back, and the Picker and the admin API over it are those of a running
// serve. What serve itself had placed (requests in flight, prompts expected) is in
// no recording. Take, Handler and Close are called by one goroutine, in this order.
type Recorded struct {
	config *Config
	fleet  *view.Fleet
	play   *feed.Playback
	tokens *tokens
	bad    error // of the first record that made no sense
	skips  int
	looker *Picker // who State asks
}

// NewRecorded returns a fleet without pods. Models and weights are those of c. Its
// pods, not the recorded ones, are asked to tokenize: nobody's prompt goes to an
// address that stands in somebody's file.
func NewRecorded(c *Config) *Recorded {
	r := &Recorded{config: c, fleet: newFleet(c)}
	r.play = feed.NewPlayback(r.fleet)
	return r
}

// Take plays records, in the order of the recording. It never fails: Flaws tells
// what made no sense.
func (r *Recorded) Take(records []*recording.Record) error {
	for _, rec := range records {
		if err := r.play.Apply(rec); err != nil {
			if r.skips++; r.bad == nil {
				r.bad = err
			}
		}
	}
	return nil
}

// Span is the time of the first record and of the last; zero without any.
func (r *Recorded) Span() (from, to time.Time) {
	a, b := r.play.Span()
	if b == 0 {
		return from, to
	}
	return time.Unix(0, a).UTC(), time.Unix(0, b).UTC()
}

// Flaws says, in lines for people, what the explanations of this recording cannot
// know.
func (r *Recorded) Flaws() (list []string) {
	if names := r.play.Midway(); len(names) > 0 {
		const few = 3
		text := strings.Join(names[:min(len(names), few)], ", ")
		if len(names) > few {
			text += fmt.Sprintf(" and %d more", len(names)-few)
		}
		list = append(list, "what these held before the recording began is not known: "+text)
	}
	if r.bad != nil {
		list = append(list, fmt.Sprintf("%d records could not be played: %v", r.skips, r.bad))
	}
	return list
}

// Handler is the admin API over the fleet as it was at a time.
func (r *Recorded) Handler(at time.Time) http.Handler {
	met := newMetrics()
	log := slog.New(slog.DiscardHandler)
	var p *Picker
	r.tokens = newTokens(nil, sync.OnceValue(r.tokenizers), func() *rules { return p.rules.Load() }, r.config.Limits, met, log)
	p = newPicker(r.fleet, newRules(r.config, r.tokens.chain), 0, Options{Log: log}, met)
	r.tokens.settle(loadPatience) // nobody asks a second time
	r.fleet.Index.Sweep(at.UnixNano())
	p.clock, p.past, p.source = func() time.Time { return at }, true, "recording"
	return newAdmin(p, Version{}, log).handler()
}

// State is the fleet as it was at a time, the one of the latest record taken: a
// Snapshot as JSON, as /v1/state answers. More records may be taken behind it.
func (r *Recorded) State(at time.Time) ([]byte, error) {
	if r.looker == nil {
		log := slog.New(slog.DiscardHandler)
		nobody := func(*Model) *prompt.Chain { return &prompt.Chain{} } // nothing is asked
		r.looker = newPicker(r.fleet, newRules(r.config, nobody), 0, Options{Log: log}, newMetrics())
		r.looker.past, r.looker.source = true, "recording"
	}
	r.looker.clock = func() time.Time { return at }
	r.fleet.Index.Sweep(at.UnixNano())
	return json.Marshal(r.looker.snapshot(stateQuery{limit: stateRows}, at))
}

// tokenizers are the configured pods, by what the recording knows of their models.
func (r *Recorded) tokenizers() *pod.Set {
	table := pod.NewTable()
	ctx, cancel := context.WithTimeout(context.Background(), r.config.Limits.TokenizeTimeout)
	defer cancel()
	for _, s := range slices.Clone(r.config.Pods) {
		addr, err := feed.Resolve(ctx, net.DefaultResolver, s.Address, netip.AddrPort{})
		if err != nil {
			continue // it cannot be asked
		}
		if was := r.fleet.Pods.Snapshot().ByName(s.Name); was != nil && s.Model == "" {
			s.Model, s.Engine = was.Spec.Model, was.Spec.Engine
		}
		if _, err := table.Add(s, addr); err != nil {
			break // full: there are enough to ask
		}
	}
	return table.Snapshot()
}

// loadPatience is how long tokenizer files may take to be read, and fetched.
const loadPatience = 30 * time.Second

// Close ends what tokenizers run, and their connections.
func (r *Recorded) Close() {
	if r.tokens != nil {
		r.tokens.close()
	}
}
