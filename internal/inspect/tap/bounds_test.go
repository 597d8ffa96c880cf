package tap

import (
	"strconv"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/recording"
)

// What a publisher makes us remember is bounded, whatever it says.
func TestTallyIsBounded(t *testing.T) {
	m := map[string]uint64{}
	for i := range 100 {
		tally(m, strconv.Itoa(i))
	}
	tally(m, "7")
	if len(m) != 33 || m["(others)"] != 68 || m["7"] != 2 || m["31"] != 1 {
		t.Errorf("%d words: %v", len(m), m)
	}
}

func TestPrefixIsBounded(t *testing.T) {
	const most = 1 << 20 // blocks of a pod
	p := newPrefix([]uint32{1})
	e := &Entry{Record: &recording.Record{Type: recording.TypeFrame, Pod: &recording.Pod{}}, Batch: &event.Batch{}}
	see := func(from, n int) int {
		hashes, tokens := make([]uint64, n), make([]uint32, n)
		for i := range hashes {
			hashes[i], tokens[i] = uint64(from+i), 1
		}
		e.Batch.Events = []event.Event{{Kind: event.Stored, Hashes: hashes, Tokens: tokens, BlockSize: 1}}
		p.see(e)
		return len(p.pods[e.Pod])
	}
	see(0, most-3)
	if got := see(most-3, 3); got != most {
		t.Fatalf("%d blocks kept of %d", got, most)
	}
	if got := see(most, 3); got != 3 || !p.begins(e.Pod, &e.Batch.Events[0]) {
		t.Errorf("%d blocks kept: beyond the cap it starts over", got)
	}
}
