package recording_test

import (
	"slices"
	"testing"

	"github.com/eppctl/eppctl/internal/core/recording"
)

func message(at int64, size int) *recording.Record {
	return &recording.Record{Type: recording.TypeFrame, At: at, Pod: podB, Parts: [][]byte{make([]byte, size)}}
}

func notice(kind string) *recording.Record {
	return &recording.Record{Type: recording.TypeNotice, Pod: podB, Notice: recording.Notice{Kind: kind}}
}

// kinds names records in short: "pod", the kind of a notice, or "." for a message.
func kinds(records []*recording.Record) (out []string) {
	for _, r := range records {
		switch r.Type {
		case recording.TypePod:
			out = append(out, "pod")
		case recording.TypeNotice:
			out = append(out, r.Notice.Kind)
		default:
			out = append(out, ".")
		}
	}
	return out
}

// Whoever comes late learns which streams there are and whether they are up.
func TestHubTellsLateReaders(t *testing.T) {
	h := recording.NewHub()
	h.Open(podA, 1)
	h.Open(podB, 1)
	h.Publish(notice(recording.Up))
	h.Publish(message(2, 1))
	if h.Watched() {
		t.Error("watched by nobody")
	}
	h.Close(podA)
	q := h.Subscribe(recording.Limits{}, nil)
	if got := kinds(q.Take()); !slices.Equal(got, []string{"pod", recording.Up}) {
		t.Error(got)
	}
	if !h.Watched() {
		t.Error("not watched")
	}
	h.Publish(message(3, 1))
	select {
	case <-q.Ready():
	default:
		t.Error("not ready")
	}
	if got := kinds(q.Take()); !slices.Equal(got, []string{"."}) {
		t.Error(got)
	}
	q.Close()
	q.Close()
	if h.Watched() {
		t.Error("watched by one who left")
	}
	h.Publish(message(4, 1))
	if got := q.Take(); got != nil {
		t.Error(kinds(got))
	}
}

func TestHubKeepsToPods(t *testing.T) {
	h := recording.NewHub()
	q := h.Subscribe(recording.Limits{}, func(p *recording.Pod) bool { return p.Name == "b" })
	defer q.Close()
	h.Open(podA, 1)
	h.Open(podB, 1)
	h.Publish(&recording.Record{Type: recording.TypeFrame, Pod: podA})
	h.Publish(&recording.Record{Type: recording.TypeNotice, Notice: recording.Notice{Kind: recording.Dropped}})
	if got := kinds(q.Take()); !slices.Equal(got, []string{"pod", recording.Dropped}) {
		t.Error(got)
	}
}

// A reader that stands still costs a bounded amount of memory, loses the oldest
// messages, keeps the notices, and is told how many it lost and where.
func TestHubSheds(t *testing.T) {
	for name, lim := range map[string]recording.Limits{
		"by number": {Records: 100},
		"by bytes":  {Records: 1 << 20, Bytes: 100 * (1000 + 280)},
	} {
		t.Run(name, func(t *testing.T) {
			h := recording.NewHub()
			q := h.Subscribe(lim, nil)
			defer q.Close()
			const sent = 10_000
			for i := range sent {
				if i == 30 {
					h.Publish(notice(recording.Gap))
				}
				h.Publish(message(int64(i), 1000))
			}
			got := q.Take()
			if len(got) > 130 {
				t.Errorf("%d records are kept", len(got))
			}
			var lost uint64
			seen, gap := 0, false
			for _, r := range got {
				switch {
				case r.Type == recording.TypeFrame:
					seen++
				case r.Notice.Kind == recording.Dropped:
					lost += r.Notice.Count
				case r.Notice.Kind == recording.Gap:
					gap = true
				}
			}
			if !gap || int(lost)+seen != sent || got[len(got)-1].At != sent-1 {
				t.Errorf("gap notice %v; %d lost and %d there of %d; %v", gap, lost, seen, sent, kinds(got)[:5])
			}
		})
	}
}

// Notices alone are bounded too.
func TestHubShedsNotices(t *testing.T) {
	h := recording.NewHub()
	q := h.Subscribe(recording.Limits{Records: 100}, nil)
	defer q.Close()
	for range 10_000 {
		h.Publish(notice(recording.Gap))
	}
	if got := q.Take(); len(got) > 101 {
		t.Errorf("%d records", len(got))
	}
}

func page(at int64, size int) *recording.Record {
	return &recording.Record{Type: recording.TypePage, At: at, Pod: podA, Status: 200, Body: make([]byte, size)}
}

// Pages crowd out no message: they have a quarter of the bytes, and the newest
// stays.
func TestPagesGiveWay(t *testing.T) {
	h := recording.NewHub()
	const bytes = 100 << 10
	q := h.Subscribe(recording.Limits{Bytes: bytes}, nil)
	defer q.Close()
	h.Publish(message(1, 1000))
	for i := range 1000 {
		h.Publish(page(int64(2+i), 5000))
	}
	h.Publish(message(2000, 1000))
	pages, messages, last := 0, 0, int64(0)
	for _, r := range q.Take() {
		switch r.Type {
		case recording.TypePage:
			pages += r.Size()
			last = r.At
		case recording.TypeFrame:
			messages++
		default:
			t.Errorf("%+v", r)
		}
	}
	if pages > bytes/4 || pages < bytes/8 || messages != 2 || last != 1001 {
		t.Errorf("%d bytes of pages, the last of %d; %d of 2 messages", pages, last, messages)
	}
	// One larger than the share comes alone.
	h.Publish(page(1, 60<<10))
	h.Publish(page(2, 60<<10))
	if got := q.Take(); len(got) != 1 || got[0].At != 2 {
		t.Errorf("%d records", len(got))
	}
}

// What stands is told to whoever comes late, in its latest form and in the order
// in which it was told first; what was withdrawn is not.
func TestHubTellsWhatStands(t *testing.T) {
	h := recording.NewHub()
	put := func(t recording.Type, p *recording.Pod, body string) {
		h.Publish(&recording.Record{Type: t, Pod: p, Body: []byte(body)})
	}
	put(recording.TypeSpec, podB, "b1")
	put(recording.TypeSpec, podA, "a1")
	put(recording.TypeState, podA, "s1")
	put(recording.TypeSpec, podB, "b2")
	put(recording.TypeState, podA, "s2")
	h.Publish(page(1, 10))
	read := func() (out []string) {
		q := h.Subscribe(recording.Limits{}, nil)
		defer q.Close()
		for _, r := range q.Take() {
			out = append(out, string(r.Body))
		}
		return out
	}
	if got := read(); !slices.Equal(got, []string{"b2", "a1", "s2"}) {
		t.Error(got)
	}
	h.Close(podA)
	if got := read(); !slices.Equal(got, []string{"b2"}) {
		t.Error(got)
	}
}
