package check

import (
	"encoding/binary"
	"strconv"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
)

// What a publisher makes a stream remember is bounded, whatever it says.
func TestTalliesAreBounded(t *testing.T) {
	s := newStream(pod.Spec{Name: "a"}, 0)
	for i := range uint64(1<<14 + 100) {
		seq := binary.BigEndian.AppendUint64(nil, i)
		s.Record(&recording.Record{Type: recording.TypeFrame, Parts: [][]byte{[]byte(strconv.FormatUint(i, 10)), seq, {0x92, 0, 0x90}}})
	}
	if len(s.digests) != 1<<14 {
		t.Errorf("%d digests kept, want 16384", len(s.digests))
	}
	if len(s.topics) != 16 || s.topics["15"] != 1 {
		t.Errorf("%d topics kept, want the first 16", len(s.topics))
	}
	// What is known by then still counts.
	s.Record(&recording.Record{Type: recording.TypeFrame, Parts: [][]byte{[]byte("15"), binary.BigEndian.AppendUint64(nil, 1<<20), {0x92, 0, 0x90}}})
	if s.topics["15"] != 2 {
		t.Errorf("%d messages of topic 15", s.topics["15"])
	}
}
