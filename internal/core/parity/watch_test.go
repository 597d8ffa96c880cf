package parity

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

const page = 16

// text is n ids that no other seed gives.
func text(seed, n int) []uint32 {
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = uint32(seed*100_000 + i)
	}
	return ids
}

func stored(ids []uint32) []event.Event {
	return []event.Event{{Kind: event.Stored, Tier: event.TierGPU, BlockSize: page, Tokens: ids, Hashes: make([]uint64, len(ids)/page)}}
}

func changed(ids []uint32, at int) []uint32 {
	ids = slices.Clone(ids)
	ids[at] += 50_000
	return ids
}

func always(pod.Member, uint64) bool { return true }

// TestVerdicts is the rule, case by case.
func TestVerdicts(t *testing.T) {
	prompt := text(1, 10*page+5)
	whole := prompt[:10*page]
	for _, tc := range []struct {
		name  string
		held  int
		do    func(w *Watch, x *Watched)
		clean bool
		want  Verdict
		at    int // of Differs and Unseen
	}{
		{"all announced", 0, func(w *Watch, x *Watched) { w.Store(0, stored(whole)); x.End(true, 0) }, true, Equal, -1},
		{"in pieces, out of order, beside others", 0, func(w *Watch, x *Watched) {
			w.Store(0, stored(whole[4*page:]))
			w.Store(0, stored(text(2, 8*page)))
			x.End(true, 0)
			w.Store(0, stored(whole[:4*page]))
		}, true, Equal, -1},
		{"only what was not held", 6, func(w *Watch, x *Watched) { w.Store(0, stored(whole[6*page:])); x.End(true, 0) }, true, Equal, -1},
		{"one id differs", 0, func(w *Watch, x *Watched) { w.Store(0, stored(changed(whole, 5*page+7))); x.End(true, 0) }, true, Differs, 5*page + 7},
		{"one id more in front", 0, func(w *Watch, x *Watched) {
			w.Store(0, stored(slices.Concat([]uint32{7}, prompt)[:10*page]))
			x.End(true, 0)
		}, true, Differs, 0},
		{"another text", 0, func(w *Watch, x *Watched) { w.Store(0, stored(text(2, 10*page))); x.End(true, 0) }, true, Unseen, 0},
		{"nothing", 0, func(_ *Watch, x *Watched) { x.End(true, 0) }, true, Unknown, -1},
		{"held unknown to us, in part", 0, func(w *Watch, x *Watched) { w.Store(0, stored(whole[4*page:])); x.End(true, 0) }, true, Unknown, -1},
		{"one differs, but the request failed", 0, func(w *Watch, x *Watched) { w.Store(0, stored(changed(whole, 3))); x.End(false, 0) }, true, Unknown, -1},
		{"one differs, but the stream lost some", 0, func(w *Watch, x *Watched) { w.Store(0, stored(changed(whole, 3))); x.End(true, 0) }, false, Unknown, -1},
		{"one differs, but the blocks were dropped", 0, func(w *Watch, x *Watched) {
			w.Store(0, stored(changed(whole, 3)))
			w.Spoil(0)
			x.End(true, 0)
		}, true, Unknown, -1},
		{"another member's", 0, func(w *Watch, x *Watched) { w.Store(1, stored(changed(whole, 3))); x.End(true, 0) }, true, Unknown, -1},
		{"a block size that was not known", 0, func(w *Watch, x *Watched) {
			e := stored(whole)
			e[0].BlockSize, e[0].Hashes = 2*page, e[0].Hashes[:5]
			w.Store(0, e)
			x.End(true, 0)
		}, true, Unknown, -1},
		{"chunks of a slower tier", 0, func(w *Watch, x *Watched) {
			e := stored(whole)
			e[0].BlockSize, e[0].Hashes, e[0].Tier = 2*page, e[0].Hashes[:5], event.TierHost
			w.Store(0, e)
			w.Store(0, stored(whole))
			x.End(true, 0)
		}, true, Equal, -1},
		{"no tokens in the event", 0, func(w *Watch, x *Watched) {
			w.Store(0, []event.Event{{Kind: event.Stored, Hashes: make([]uint64, 10)}})
			x.End(true, 0)
		}, true, Unknown, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := NewWatch(1)
			x := w.Place(&Routed{Model: "m", Tokens: prompt, Size: page, Held: tc.held}, 0)
			tc.do(w, x)
			if early := w.Sweep(int64(settle)-1, always); len(early) > 0 {
				t.Errorf("a verdict before the engine's time was up: %v", early)
			}
			got := w.Sweep(int64(settle), func(pod.Member, uint64) bool { return tc.clean })
			want := []Judged{{"m", 0, tc.want, tc.at, -1}}
			if tc.at >= 0 {
				want[0].Block = tc.at / page
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

// TestBounds: what is kept does not grow, and what does not end is given up.
func TestBounds(t *testing.T) {
	w := NewWatch(1)
	n, long := 0, text(1, 1<<16)
	for m := range pod.Member(pod.MaxMembers) {
		for range 2 * maxMember {
			if w.Place(&Routed{Member: m, Tokens: long, Size: page}, 0) != nil {
				n++
			}
		}
	}
	if n != maxWatched {
		t.Errorf("%d are watched, want %d", n, maxWatched)
	}
	for m := range w.lanes {
		list := w.lanes[m].list
		for _, x := range list {
			if len(x.keys) > maxTokens/page || len(list) > maxMember {
				t.Fatalf("%d blocks of a prompt, %d requests of a member", len(x.keys), len(list))
			}
		}
	}
	if got := w.Sweep(int64(giveUp), always); len(got) != maxWatched || got[0].Verdict != Unknown || w.all.Load() != 0 || w.lanes[0].busy.Load() != 0 {
		t.Errorf("%d given up, %d left", len(got), w.all.Load())
	}
	for _, r := range []Routed{
		{Tokens: text(1, 15), Size: page},                // no whole block
		{Tokens: text(1, 2*page), Size: page, Held: 2},   // nothing new
		{Tokens: text(1, 64), Size: 0},                   // size not known
		{Tokens: text(1, 64), Size: 1},                   // too small to tell by
		{Tokens: text(1, 64), Size: page, Held: 1 << 40}, // more than the prompt has
	} {
		if x := w.Place(&r, 0); x != nil {
			t.Errorf("%d tokens in blocks of %d, %d held: watched", len(r.Tokens), r.Size, r.Held)
		}
	}
	(*Watched)(nil).End(true, 0) // what is not watched may be ended
}

// TestTally: few differences or a long row of unseen requests, and a clean record
// brings the trust back.
func TestTally(t *testing.T) {
	var x Tally
	add := func(v Verdict, n int) {
		for range n {
			x.Add(Judged{Verdict: v, At: -1, Block: -1})
		}
	}
	add(Equal, 1000)
	add(Differs, fewDiffer-1)
	if x.Failed() {
		t.Error("failed too early")
	}
	add(Differs, 1)
	if n, of := x.Recent(); !x.Failed() || n != fewDiffer || of != window {
		t.Errorf("%d of %d differ", n, of)
	}
	add(Unknown, 10_000)
	if !x.Failed() {
		t.Error("requests that say nothing brought the trust back")
	}
	add(Equal, window)
	add(Unseen, manyUnseen-1)
	if x.Failed() {
		t.Error("still failed")
	}
	add(Unseen, 1)
	if !x.Failed() {
		t.Error("a long row of unseen requests is no failure")
	}
	total := x.Total
	if x.Forget(); x.Failed() || x.Total != total {
		t.Errorf("after Forget: %+v", x.Total)
	}
}

// TestParted: of what speaks against the ids, the last whose place is known is told, and
// nothing any more once nothing does.
func TestParted(t *testing.T) {
	var x Tally
	for i, step := range []struct {
		v    Verdict
		at   int
		n    int
		want int // -1 = nothing is told
	}{
		{Equal, -1, 1, -1},
		{Unseen, -1, 1, -1},
		{Unseen, 2, 1, 2},
		{Unknown, -1, 1, 2},
		{Equal, -1, 1, -1},
		{Differs, -1, 1, -1},
		{Differs, 40, 1, 40},
		{Differs, 7, 1, 7},
		{Differs, -1, 1, 7},
		{Unseen, 0, 1, 7},
		{Equal, -1, window - 1, 7},
		{Equal, -1, 1, -1},
	} {
		for range step.n {
			x.Add(Judged{Verdict: step.v, At: step.at, Block: step.at})
		}
		got := -1
		if p := x.Parted(); p != nil {
			got = p.At
		}
		if got != step.want {
			t.Errorf("step %d, %v at %d: %d is told, want %d", i, step.v, step.at, got, step.want)
		}
	}
}

// TestPartedBlock: a block alone is told until a position is known.
func TestPartedBlock(t *testing.T) {
	var x Tally
	for i, step := range []struct{ add, want Judged }{
		{Judged{Verdict: Differs, At: -1, Block: 3}, Judged{Verdict: Differs, At: -1, Block: 3}},
		{Judged{Verdict: Differs, At: -1, Block: 0}, Judged{Verdict: Differs, At: -1, Block: 0}},
		{Judged{Verdict: Differs, At: 90, Block: 5}, Judged{Verdict: Differs, At: 90, Block: 5}},
		{Judged{Verdict: Differs, At: -1, Block: 3}, Judged{Verdict: Differs, At: 90, Block: 5}},
	} {
		x.Add(step.add)
		if got := x.Parted(); got == nil || *got != step.want {
			t.Errorf("step %d: %+v, want %+v", i, got, step.want)
		}
	}
}

// TestStoreAllocates nothing: it stands in the path of every event.
func TestStoreAllocates(t *testing.T) {
	w := NewWatch(1)
	w.Place(&Routed{Tokens: text(1, 4096), Size: page}, 0)
	e := stored(text(2, 4096))
	w.Store(0, e)
	if n := testing.AllocsPerRun(10, func() { w.Store(0, e) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkStore(b *testing.B) {
	e := stored(text(2, 4096))
	for name, n := range map[string]int{"idle": 0, "one watched": 1, "as many as may be": maxMember} {
		b.Run(name, func(b *testing.B) {
			w := NewWatch(1)
			for range n {
				w.Place(&Routed{Tokens: text(1, 4096), Size: page}, time.Now().UnixNano())
			}
			for b.Loop() {
				w.Store(0, e)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(4096/page), "ns/block")
		})
	}
}

// TestManyStreams goes through the race detector: streams, requests and sweeps meet.
func TestManyStreams(t *testing.T) {
	w := NewWatch(1)
	var all sync.WaitGroup
	ids := text(1, 4*page)
	for m := range pod.Member(4) {
		all.Go(func() {
			for range 200 {
				w.Store(m, stored(ids))
				w.Spoil(m)
			}
		})
		all.Go(func() {
			for i := range int64(200) {
				w.Place(&Routed{Member: m, Tokens: ids, Size: page}, i).End(true, i)
			}
		})
	}
	all.Go(func() {
		for i := range int64(200) {
			w.Sweep(i+int64(settle), always)
		}
	})
	all.Wait()
	w.Sweep(int64(giveUp), always)
	if n := w.all.Load(); n != 0 {
		t.Errorf("%d are watched for ever", n)
	}
}
