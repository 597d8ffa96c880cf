package tap

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/testdata"
)

// TestPulledEvents: what serve pulled is shown like what is published. Each pod
// has a decoder of its own, since these events build on each other.
func TestPulledEvents(t *testing.T) {
	page, err := os.Open(filepath.Join(testdata.Dirs(t, "kv-events")[0], "trtllm_pull.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	a, b := &recording.Pod{Name: "a"}, &recording.Pod{Name: "b"}
	var d decoder
	got := map[event.Kind]int{}
	err = event.ReadPage(page, func(p event.Pulled) {
		for _, pod := range []*recording.Pod{a, b} {
			e := d.decode(&recording.Record{Type: recording.TypeFrame, Pod: pod, Parts: [][]byte{
				[]byte(event.LayoutPull), {0, 0, 0, 0, 0, 0, 0, byte(p.ID)}, p.Body,
			}})
			if e.Bad != nil || e.Batch == nil || e.Seq != p.ID {
				t.Fatalf("event %d: %+v", p.ID, e)
			}
			for i := range e.Batch.Events {
				if ev := &e.Batch.Events[i]; ev.Layout != event.LayoutPull {
					t.Errorf("layout %q", ev.Layout)
				} else {
					got[ev.Kind]++
				}
			}
		}
	})
	if err != nil || got[event.Stored] != 4 || got[event.Removed] != 4 {
		t.Errorf("%v, %v", err, got)
	}
}
