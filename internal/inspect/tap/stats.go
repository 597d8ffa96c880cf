package tap

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// Stats is what the streams consist of; kind Stats, with --stats.
type Stats struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	DurationMs int64       `json:"duration_ms"`
	Pods       []*PodStats `json:"pods"`

	byPod map[recording.Pod]*PodStats
}

// PodStats is the tally of one publisher.
type PodStats struct {
	Pod          string   `json:"pod"`
	Rank         int      `json:"rank"`
	Batches      uint64   `json:"batches"`
	Replayed     uint64   `json:"replayed"`
	Events       uint64   `json:"events"`
	EventsPerSec *float64 `json:"events_per_s"` // null: over no time
	BytesPerSec  *float64 `json:"bytes_per_s"`
	Bytes        uint64   `json:"bytes"`
	LargestBytes int      `json:"largest_bytes"` // message
	Gaps         uint64   `json:"gaps"`
	Lost         uint64   `json:"lost"`
	Restarts     uint64   `json:"restarts"`

	Kinds      map[string]uint64 `json:"kinds"`       // events
	Tiers      map[string]uint64 `json:"tiers"`       // events, by the wire's word
	BlockSizes map[string]uint64 `json:"block_sizes"` // stores
	Layouts    map[string]uint64 `json:"layouts"`     // events
	HashForms  map[string]uint64 `json:"hash_forms"`  // events
	SpecKinds  map[string]uint64 `json:"spec_kinds"`  // events, by group and kind
	Framings   map[string]uint64 `json:"framings"`    // messages, by number of parts
	Unknown    map[string]uint64 `json:"unknown"`     // what the decoder has not heard of
	Faults     map[string]uint64 `json:"faults"`      // what could not be read

	first   int64
	last    int64
	live    uint64 // events that came live
	liveLen uint64 // bytes
	pod     recording.Pod
}

// maxWords bounds each tally: the words come from the wire.
const maxWords = 32

func newStats() *Stats {
	return &Stats{APIVersion: apiVersion, Kind: "Stats", Pods: []*PodStats{}, byPod: map[recording.Pod]*PodStats{}}
}

func tally(m map[string]uint64, word string) {
	if _, ok := m[word]; !ok && len(m) >= maxWords {
		word = "(others)"
	}
	m[word]++
}

func (s *Stats) of(p *recording.Pod) *PodStats {
	key := recording.Pod{Name: "-"}
	if p != nil {
		key = *p
	}
	ps := s.byPod[key]
	if ps == nil {
		ps = &PodStats{Pod: key.Name, Rank: key.Rank, pod: key}
		for _, m := range []*map[string]uint64{
			&ps.Kinds, &ps.Tiers, &ps.BlockSizes, &ps.Layouts, &ps.HashForms, &ps.SpecKinds, &ps.Framings, &ps.Unknown, &ps.Faults,
		} {
			*m = map[string]uint64{}
		}
		s.byPod[key] = ps
		s.Pods = append(s.Pods, ps)
	}
	return ps
}

// Take implements Consumer.
func (s *Stats) Take(e *Entry) {
	switch e.Type {
	case recording.TypeNotice:
		p := s.of(e.Pod)
		switch e.Notice.Kind {
		case recording.Gap:
			p.Gaps++
			p.Lost += e.Notice.Count
		case recording.Restart:
			p.Restarts++
		}
	case recording.TypeFrame, recording.TypeReplay:
		s.of(e.Pod).message(e)
	}
}

func (p *PodStats) message(e *Entry) {
	p.Batches++
	size := 0
	for _, part := range e.Parts {
		size += len(part)
	}
	p.Bytes += uint64(size)
	p.LargestBytes = max(p.LargestBytes, size)
	framing := fmt.Sprintf("%d parts", len(e.Parts))
	if e.Replayed {
		p.Replayed++
		framing = fmt.Sprintf("replay of %d parts", len(e.Parts)-1)
	} else {
		if p.first == 0 {
			p.first = e.At
		}
		p.last = e.At
		p.liveLen += uint64(size)
	}
	tally(p.Framings, framing)
	for _, f := range e.faults() {
		if !f.unknown { // Unknown names those
			tally(p.Faults, f.field+": "+f.why)
		}
	}
	if e.Batch == nil {
		return
	}
	for _, u := range e.Batch.Unknown {
		tally(p.Unknown, u.Name)
	}
	p.Events += uint64(len(e.Batch.Events))
	if !e.Replayed {
		p.live += uint64(len(e.Batch.Events))
	}
	for i := range e.Batch.Events {
		p.event(&e.Batch.Events[i])
	}
}

func (p *PodStats) event(ev *event.Event) {
	tally(p.Kinds, ev.Kind.String())
	medium := tierName(ev)
	if ev.Medium != "" {
		medium += " (" + ev.Medium + ")"
	}
	tally(p.Tiers, medium)
	tally(p.Layouts, ev.Layout)
	if ev.HashForm != "" {
		tally(p.HashForms, ev.HashForm)
	}
	if ev.Kind != event.Stored {
		return
	}
	size := fmt.Sprint(ev.BlockSize)
	if ev.BlockSize == 0 {
		size = "none"
	}
	tally(p.BlockSizes, size)
	kind := ev.SpecKind
	if kind == "" {
		kind = "not said"
	}
	if ev.Window > 0 {
		kind += fmt.Sprintf(" of %d", ev.Window)
	}
	tally(p.SpecKinds, fmt.Sprintf("group %d: %s", ev.Group, kind))
}

// close completes what is derived.
func (s *Stats) close(d time.Duration) {
	s.DurationMs = d.Milliseconds()
	slices.SortFunc(s.Pods, func(a, b *PodStats) int { return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Rank, b.Rank)) })
	for _, p := range s.Pods {
		if t := float64(p.last-p.first) / 1e9; t > 0 {
			events, bytes := float64(p.live)/t, float64(p.liveLen)/t
			p.EventsPerSec, p.BytesPerSec = &events, &bytes
		}
	}
}

// write prints the tallies for a person, a block per publisher.
func (s *Stats) write(w io.Writer, st *out.Streams) error {
	for i, p := range s.Pods {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, st.Paint(out.Bold, out.Clean(podName(&p.pod))))
		t := &out.Table{Indent: "  ", Columns: []out.Column{{}, {Elastic: true}}}
		line := fmt.Sprintf("%d, %d of them replayed, %s in all, the largest %s", p.Batches, p.Replayed, size(int64(p.Bytes)), size(int64(p.LargestBytes)))
		t.Add("messages", line)
		if p.EventsPerSec != nil {
			t.Add("rate", fmt.Sprintf("%.1f events/s, %s/s", *p.EventsPerSec, size(int64(*p.BytesPerSec))))
		}
		t.Add("loss", fmt.Sprintf("%s, %d lost; %s", count(p.Gaps, "gap"), p.Lost, count(p.Restarts, "restart")))
		for _, l := range []struct {
			name string
			m    map[string]uint64
		}{
			{"events", p.Kinds}, {"tiers", p.Tiers}, {"block sizes", p.BlockSizes}, {"layouts", p.Layouts}, {"hashes", p.HashForms},
			{"groups", p.SpecKinds}, {"framing", p.Framings}, {"unknown", p.Unknown}, {"not read", p.Faults},
		} {
			if len(l.m) > 0 {
				t.Add(l.name, counts(l.m))
			}
		}
		if err := t.Write(w, st); err != nil {
			return err
		}
	}
	return nil
}

// counts writes a tally, the most frequent first.
func counts(m map[string]uint64) string {
	words := slices.Sorted(maps.Keys(m))
	slices.SortStableFunc(words, func(a, b string) int { return cmp.Compare(m[b], m[a]) })
	parts := make([]string, len(words))
	for i, word := range words {
		parts[i] = fmt.Sprintf("%s: %d", word, m[word])
	}
	return strings.Join(parts, ", ")
}
