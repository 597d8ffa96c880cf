package tap

import (
	"fmt"
	"io"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// Account is what tap counted in all; kind Account. It ends every recording.
type Account struct {
	APIVersion    string `json:"apiVersion"`
	Kind          string `json:"kind"`
	DurationMs    int64  `json:"duration_ms"`
	PodsConnected int    `json:"pods_connected"` // now; at the end, where it is the last account
	PodsEver      int    `json:"pods_ever_connected"`
	PodsWanted    int    `json:"pods_wanted"`

	Batches  uint64 `json:"batches"`  // messages, replayed and unreadable ones included
	Replayed uint64 `json:"replayed"` // of these, by replay
	Bytes    uint64 `json:"bytes"`    // of all parts
	Events   uint64 `json:"events"`
	Matched  uint64 `json:"matched"` // the filter
	Stored   uint64 `json:"stored"`
	Removed  uint64 `json:"removed"`
	Cleared  uint64 `json:"cleared"`

	LagUs *LagUs `json:"lag_us"` // null without a batch that says when it was made
	// Skewed batches have a lag below zero or above a second: a difference of
	// clocks, left out of LagUs.
	Skewed uint64 `json:"skewed"`

	Gaps      uint64 `json:"gaps"`
	Lost      uint64 `json:"lost"`      // batches in them
	Recovered uint64 `json:"recovered"` // of these, by replay
	Restarts  uint64 `json:"restarts"`
	Partials  uint64 `json:"partials"`
	Dropped   uint64 `json:"dropped"` // messages that tap or serve left out

	Undecodable      uint64     `json:"undecodable"`    // messages, as a whole
	SkippedEvents    uint64     `json:"skipped_events"` // of messages that were read
	UnknownEvents    uint64     `json:"unknown_events"` // of these, those of kinds that eppctl does not know
	FirstUndecodable *BadThing  `json:"first_undecodable"`
	HiddenBySample   uint64     `json:"hidden_by_sample"`
	HiddenByRate     uint64     `json:"hidden_by_rate"`
	UnknownRecords   uint64     `json:"unknown_records"` // of a recording that was read
	Written          *WrittenTo `json:"written"`

	lag      lags
	up       map[string]map[int]bool // by pod: the ranks that are, or were, connected
	wanted   map[string]bool
	unfilled map[*recording.Pod]string // replays that failed, and why
	gaps     map[*recording.Pod]span   // the latest of each
}

// LagUs are quantiles of a lag in microseconds.
type LagUs struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

// BadThing is where the first thing was that could not be read.
type BadThing struct {
	Pod    string `json:"pod"`
	Offset *int   `json:"offset"` // in the payload; null = the message as a whole
	Field  string `json:"field"`
	Why    string `json:"why"`
}

// WrittenTo is the recording that was written.
type WrittenTo struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"` // in all files of a rotation
	Files int    `json:"files"` // begun
}

type span struct{ from, to uint64 }

func newAccount() *Account {
	return &Account{
		APIVersion: apiVersion, Kind: "Account",
		up: map[string]map[int]bool{}, wanted: map[string]bool{}, gaps: map[*recording.Pod]span{}, unfilled: map[*recording.Pod]string{},
	}
}

// take counts a record.
func (a *Account) take(e *Entry) {
	switch e.Type {
	case recording.TypePod:
		if e.Pod.IsStream() {
			a.wanted[e.Pod.Name] = true
		}
	case recording.TypeNotice:
		a.notice(e)
	case recording.TypeFrame, recording.TypeReplay:
		a.message(e)
	}
}

func (a *Account) notice(e *Entry) {
	switch n := e.Notice; n.Kind {
	case recording.Up:
		if a.up[nameOf(e.Pod)] == nil {
			a.up[nameOf(e.Pod)] = map[int]bool{}
		}
		a.up[nameOf(e.Pod)][rankOf(e.Pod)] = true
	case recording.Down:
		if ranks := a.up[nameOf(e.Pod)]; ranks != nil {
			ranks[rankOf(e.Pod)] = false
		}
	case recording.Gap:
		a.Gaps++
		a.Lost += n.Count
		if n.FromSeq != nil && n.ToSeq != nil {
			a.gaps[e.Pod] = span{*n.FromSeq, *n.ToSeq}
		}
	case recording.Replay:
		delete(a.unfilled, e.Pod)
		if n.Outcome == replayFailed {
			a.unfilled[e.Pod] = n.Why
		}
		if g, ok := a.gaps[e.Pod]; ok && n.FromSeq != nil && n.ToSeq != nil && n.Count > 0 {
			if from, to := max(g.from, *n.FromSeq), min(g.to, *n.ToSeq); from <= to {
				a.Recovered += to - from + 1
			}
			delete(a.gaps, e.Pod)
		}
	case recording.Restart:
		a.Restarts++
	case recording.Partial:
		a.Partials++
	case recording.Dropped:
		a.Dropped += n.Count
	}
}

func (a *Account) message(e *Entry) {
	a.Batches++
	if e.Replayed {
		a.Replayed++
	}
	for _, p := range e.Parts {
		a.Bytes += uint64(len(p))
	}
	for _, f := range e.faults() {
		switch {
		case f.unknown:
			a.UnknownEvents++
		case a.FirstUndecodable == nil:
			a.FirstUndecodable = &BadThing{Pod: podName(e.Pod), Field: f.field, Why: f.why}
			if f.offset >= 0 {
				a.FirstUndecodable.Offset = &f.offset
			}
		}
	}
	if e.Batch == nil {
		a.Undecodable++
		return
	}
	a.SkippedEvents += uint64(len(e.Batch.Skipped))
	a.Events += uint64(len(e.Batch.Events))
	for i := range e.Batch.Events {
		switch e.Batch.Events[i].Kind {
		case event.Stored:
			a.Stored++
		case event.Removed:
			a.Removed++
		case event.Cleared:
			a.Cleared++
		}
	}
	if lag, ok := e.lag(); ok && skewed(lag) {
		a.Skewed++
	} else if ok {
		a.lag.add(lag)
	}
}

// close completes what is derived. It may be called more than once.
func (a *Account) close(d time.Duration, t *thin, wanted int) {
	a.DurationMs = d.Milliseconds()
	a.PodsConnected, a.PodsEver, a.PodsWanted = 0, len(a.up), max(wanted, len(a.wanted))
	for _, ranks := range a.up {
		for _, up := range ranks {
			if up {
				a.PodsConnected++
				break
			}
		}
	}
	a.HiddenBySample, a.HiddenByRate = t.bySample, t.byRate
	if a.lag.count > 0 {
		a.LagUs = &LagUs{a.lag.quantile(0.5), a.lag.quantile(0.99), a.lag.max / 1000}
	}
}

// write prints the account for a person.
func (a *Account) write(w io.Writer) {
	d := time.Duration(a.DurationMs) * time.Millisecond
	fmt.Fprintf(w, "tap: %.1fs, %d of %s connected", d.Seconds(), a.PodsConnected, out.Plural(a.PodsWanted, "pod"))
	if a.PodsEver > a.PodsConnected {
		fmt.Fprintf(w, " (%d before)", a.PodsEver)
	}
	fmt.Fprintf(w, ", %s, %s", count(a.Batches, "batch"), count(a.Events, "event"))
	if s := d.Seconds(); s > 0 {
		fmt.Fprintf(w, " (%.0f/s)", float64(a.Events)/s)
	}
	fmt.Fprintf(w, ", %d matched the filter\n", a.Matched)
	fmt.Fprintf(w, "tap: stored %d, removed %d, cleared %d", a.Stored, a.Removed, a.Cleared)
	if l := a.LagUs; l != nil {
		fmt.Fprintf(w, "; lag p50 %s p99 %s max %s", micros(l.P50), micros(l.P99), micros(l.Max))
	}
	if a.Skewed > 0 {
		fmt.Fprintf(w, "; %s with a clock that differs", count(a.Skewed, "batch"))
	}
	if a.Replayed > 0 {
		fmt.Fprintf(w, "; %s by replay", count(a.Replayed, "batch"))
	}
	fmt.Fprintf(w, "\ntap: %s, %d lost, %d recovered", count(a.Gaps, "gap"), a.Lost, a.Recovered)
	if a.Restarts > 0 {
		fmt.Fprintf(w, ", %s", count(a.Restarts, "restart"))
	}
	fmt.Fprintf(w, "; %d undecodable", a.Undecodable)
	if n := a.SkippedEvents - a.UnknownEvents; n > 0 {
		fmt.Fprintf(w, ", %s not read", count(n, "event"))
	}
	if b := a.FirstUndecodable; b != nil {
		fmt.Fprintf(w, " (first: %s", out.Clean(b.Pod))
		if b.Offset != nil {
			fmt.Fprintf(w, " at offset %d", *b.Offset)
		}
		fmt.Fprintf(w, ", %s: %s)", out.Clean(b.Field), out.Clean(b.Why))
	}
	if a.UnknownEvents > 0 {
		fmt.Fprintf(w, "; %s of unknown kinds", count(a.UnknownEvents, "event"))
	}
	fmt.Fprintf(w, "; %d dropped by tap", a.Dropped)
	if n := a.HiddenBySample + a.HiddenByRate; n > 0 {
		fmt.Fprintf(w, "; %d hidden by --sample, %d by --rate", a.HiddenBySample, a.HiddenByRate)
	}
	if a.UnknownRecords > 0 {
		fmt.Fprintf(w, "; %s of unknown types passed over", count(a.UnknownRecords, "record"))
	}
	if f := a.Written; f != nil {
		fmt.Fprintf(w, "; wrote %s (%s", out.Clean(f.File), size(f.Bytes))
		if f.Files > 1 {
			fmt.Fprintf(w, " in %d files", f.Files)
		}
		fmt.Fprint(w, ")")
	}
	fmt.Fprintln(w)
}

func count(n uint64, noun string) string { return out.Plural(int(n), noun) }

func micros(us int64) string {
	switch {
	case us < 1000:
		return fmt.Sprintf("%dus", us)
	case us < 10_000:
		return fmt.Sprintf("%.1fms", float64(us)/1e3)
	case us < 1e6:
		return fmt.Sprintf("%dms", us/1000)
	}
	return fmt.Sprintf("%.1fs", float64(us)/1e6)
}

func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
