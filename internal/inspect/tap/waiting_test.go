package tap

import (
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/recording"
)

// A person hears once of a stream that is connected and says nothing.
func TestWaiting(t *testing.T) {
	var w waiting
	w.take(note(podA, recording.Notice{Kind: recording.Up}))
	w.take(note(podB, recording.Notice{Kind: recording.Up}))
	if l := w.silent(at+int64(patience)-1, 0); len(l) != 0 {
		t.Errorf("too soon: %v", l)
	}
	w.take(message(podB, 1, store(1, 1)))
	if l := w.silent(at+int64(patience), 0); len(l) != 1 || !strings.Contains(l[0], "vllm-a-3: connected, and no event in 10s") {
		t.Errorf("%v", l)
	}
	if l := w.silent(at+2*int64(patience), 0); len(l) != 0 {
		t.Errorf("again: %v", l)
	}
	w.take(note(podA, recording.Notice{Kind: recording.Down}))
	w.take(note(podA, recording.Notice{Kind: recording.Up}))
	if l := w.silent(at+int64(patience), 0); len(l) != 1 {
		t.Errorf("after a reconnect: %v", l)
	}
}

// What serve has been connected to for long is silent only from when tap listens.
func TestWaitingOfServe(t *testing.T) {
	var w waiting
	w.take(note(podA, recording.Notice{Kind: recording.Up}))
	begun := at + 1000*int64(patience)
	if l := w.silent(begun+int64(patience)-1, begun); len(l) != 0 {
		t.Errorf("too soon: %v", l)
	}
	if l := w.silent(begun+int64(patience), begun); len(l) != 1 || !strings.Contains(l[0], "vllm-a-3: connected, and no event in 10s") {
		t.Errorf("%v", l)
	}
}
