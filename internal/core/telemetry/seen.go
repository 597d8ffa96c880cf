package telemetry

import "slices"

// SeenAdapter is an adapter that an earlier page of the same process showed.
type SeenAdapter struct {
	Name string
	At   int64 // ns: the latest page on which it was in use
}

const (
	// maxSeen bounds the history of a pod: engines keep as many adapters as their
	// start says, vLLM one and SGLang eight unless told otherwise.
	maxSeen = 128
	// maxSeenName is as long as any name that a request can ask for.
	maxSeenName = 256
	// maxActive bounds the names of one list of a page. No engine computes with more
	// adapters at once than it can have loaded. Each decision that wants an adapter walks
	// them, and recent decisions keep the pages that they read.
	maxActive = maxSeen
	// maxNames bounds the bytes of a list's names, together: 128 of 64, which is more than
	// the name of a repository has.
	maxNames = 8 << 10
)

// roster is the room that a list of names has left.
type roster struct{ names, bytes int }

// take reports whether there was room for the name.
func (r *roster) take(name string) bool {
	if r.names == 0 || len(name) > min(r.bytes, maxSeenName) {
		return false
	}
	r.names--
	r.bytes -= len(name)
	return true
}

// Active reports whether the page shows the adapter.
func (l *LoRA) Active(name string) bool {
	_, running := slices.BinarySearch(l.Running, name)
	_, waiting := slices.BinarySearch(l.Waiting, name)
	return running || waiting
}

// Adapters yields the adapters that this page or an earlier one of the process
// showed, each once with the time of the latest such page, the latest first. On one
// page those that only wait come first: they are loaded later.
func (s *Sample) Adapters(yield func(name string, at int64) bool) {
	l := &s.LoRA
	for _, n := range l.Waiting {
		if _, runs := slices.BinarySearch(l.Running, n); !runs && !yield(n, s.At) {
			return
		}
	}
	for _, n := range l.Running {
		if !yield(n, s.At) {
			return
		}
	}
	for _, x := range l.Seen {
		if !l.Active(x.Name) && !yield(x.Name, x.At) {
			return
		}
	}
}

// seen is the history for the page after this one. Only the most recent are kept,
// as an engine does.
func (s *Sample) seen() (list []SeenAdapter) {
	if len(s.LoRA.Running)+len(s.LoRA.Waiting) == 0 {
		return s.LoRA.Seen // immutable: both may have it
	}
	room := roster{maxSeen, maxNames}
	for n, at := range s.Adapters {
		if room.take(n) {
			list = append(list, SeenAdapter{n, at})
		}
	}
	return list
}
