package phase_test

import (
	"runtime"
	"testing"

	"github.com/eppctl/eppctl/bench/phase"
	"github.com/eppctl/eppctl/bench/product"
	"github.com/eppctl/eppctl/bench/workload"
)

// fleet is the workload of 64 ranks, once for all tests.
var fleet = workload.New(64)

// TestPhasesLeaveTheTruth runs every phase that writes on the product: what it
// evicts it stores again, so the depths must be right after each.
func TestPhasesLeaveTheTruth(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w, d, truths := fleet, fleet.Draw(), fleet.Truths(false)
	ix := product.New(w, true)
	check := func(name string) {
		t.Helper()
		if err := ix.Check(w, truths); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r := phase.Load(ix, w, false, workload.PerEvent); r.Blocks != 1436673 || r.Events != 45258 || r.CPU <= 0 {
		t.Errorf("load: %+v", r)
	}
	check("load")

	moved := 0
	for _, p := range d.Evict {
		s := w.Tail(p)
		moved += 2 * (s.To - s.From) // removed and stored
	}
	for _, c := range []struct{ per, batch int }{{workload.PerEvent, 1}, {1, 1}, {1, workload.Batch}} {
		if r := phase.Mix(ix, w, d.Evict, c.per, c.batch); r.Blocks != moved || c.per == 1 && r.Events <= moved/2 {
			t.Errorf("mix: %+v, want %d blocks", r, moved)
		}
		check("mix")
	}
	for _, picks := range [][]workload.Pick{d.Decode, d.Steps} {
		if r := phase.Decode(ix, w, picks); r.Blocks != len(picks)*workload.Grown || r.Events != r.Blocks {
			t.Errorf("decode: %+v", r)
		}
		check("decode")
	}

	b := phase.Beside(ix, w, d.Long[:200], d.Refresh)
	if len(b.Lookup) != 200 || b.Writer.Blocks == 0 {
		t.Errorf("beside: %d lookups, writer %+v", len(b.Lookup), b.Writer)
	}
	check("beside a reader")

	if s := phase.Drops(ix, 64); len(s) != 64 {
		t.Errorf("%d drops", len(s))
	}
	if n := phase.Wrong(ix, w, make([]workload.Truth, len(truths))); n > 0 {
		t.Errorf("%d depths of removed ranks are not zero", n)
	}
}

func TestTwoTiersAreRight(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ix := product.New(fleet, false)
	phase.Load(ix, fleet, true, workload.PerEvent)
	if err := ix.Check(fleet, fleet.Truths(true)); err != nil {
		t.Error(err)
	}
	d := fleet.Draw()
	l := phase.Lookup(ix, fleet, d.Short[:50], product.Floor(fleet)) // panics if the floor is wrong
	if len(l.Cold) != 50 || len(l.Hot) != 50 || len(l.Miss) != 50 || len(l.FloorHot) != 50 {
		t.Errorf("samples: %d %d %d %d", len(l.Cold), len(l.Hot), len(l.Miss), len(l.FloorHot))
	}
}

// TestWrongNotices counts the depths an index gets wrong.
func TestWrongNotices(t *testing.T) {
	ix := product.New(fleet, false)
	truths := fleet.Truths(false)
	none := phase.Wrong(ix, fleet, truths)
	held := 0
	for _, truth := range truths {
		if truth.Depth > 0 {
			held++
		}
	}
	if none != held || held == 0 {
		t.Errorf("an empty index has %d wrong depths, want %d", none, held)
	}
}
