package view

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/pod"
)

const ms = int64(time.Millisecond)

func somePod(id pod.ID, epoch uint64) *pod.Pod {
	return &pod.Pod{ID: id, Epoch: epoch, Members: []pod.Member{pod.Member(id)}}
}

func seconds(s float64) Work { return Work{Prefill: time.Duration(s * 1e9), Rank: -1} }

func wantQueue(t *testing.T, l *Ledger, p *pod.Pod, at int64, want float64) {
	t.Helper()
	if got := l.Load(p, at).Queue; got != time.Duration(want*1e9) {
		t.Errorf("queue at %d ms = %v, want %v s", at/ms, got, want)
	}
}

func wantCounts(t *testing.T, l *Ledger, p *pod.Pod, inFlight, waiting int) {
	t.Helper()
	got := l.Load(p, 0)
	if got.InFlight != inFlight || got.Waiting != waiting {
		t.Errorf("in flight %d, waiting %d; want %d, %d", got.InFlight, got.Waiting, inFlight, waiting)
	}
}

func TestQueueFollowsPlacementsAndAnswers(t *testing.T) {
	l, p := NewLedger(), somePod(3, 1)
	first := l.Place(p, seconds(0.4), 0)
	second := l.Place(p, seconds(0.3), 0)
	t.Run("SC-20", func(t *testing.T) {
		wantQueue(t, l, p, 0, 0.7)
		wantQueue(t, l, p, 200*ms, 0.5)
	})
	t.Run("SC-22", func(t *testing.T) {
		wantQueue(t, l, p, 2000*ms, 0)
		wantCounts(t, l, p, 2, 2)
	})
	t.Run("SC-21", func(t *testing.T) {
		first.FirstByte(500 * ms)
		wantQueue(t, l, p, 500*ms, 0.3)
		wantCounts(t, l, p, 2, 1)
	})
	t.Run("a second first byte changes nothing", func(t *testing.T) {
		first.FirstByte(600 * ms)
		wantQueue(t, l, p, 600*ms, 0.2)
		wantCounts(t, l, p, 2, 1)
	})
	t.Run("SC-23", func(t *testing.T) {
		second.End(600 * ms)
		wantQueue(t, l, p, 600*ms, 0)
		wantCounts(t, l, p, 1, 0)
	})
	t.Run("SC-24", func(t *testing.T) {
		for range 3 {
			first.End(700 * ms)
		}
		second.End(800 * ms)
		second.FirstByte(800 * ms)
		wantCounts(t, l, p, 0, 0)
	})
}

// An abort in front of the queue takes its time with it.
func TestAbortRebases(t *testing.T) {
	l, p := NewLedger(), somePod(0, 1)
	a := l.Place(p, seconds(0.4), 0)
	l.Place(p, seconds(0.3), 0)
	a.End(100 * ms)
	wantQueue(t, l, p, 100*ms, 0.3)
	wantCounts(t, l, p, 1, 1)
}

func TestPodRemovedAndAddedAgain(t *testing.T) {
	t.Run("SC-25", func(t *testing.T) {
		l, before, after := NewLedger(), somePod(7, 1), somePod(7, 2)
		old := l.Place(before, seconds(1), 0)
		answered := l.Place(before, seconds(1), 0)
		answered.FirstByte(10 * ms)
		if got := l.Load(after, 0); got != (Load{}) {
			t.Errorf("new pod starts with %+v", got)
		}
		fresh := l.Place(after, seconds(2), 0)
		old.End(20 * ms)
		answered.End(30 * ms)
		wantCounts(t, l, after, 1, 1)
		wantQueue(t, l, after, 0, 2)
		// A decision made on the earlier snapshot may still place there.
		late := l.Place(before, seconds(1), 40*ms)
		wantCounts(t, l, after, 1, 1)
		late.End(50 * ms)
		fresh.End(60 * ms)
		wantCounts(t, l, after, 0, 0)
	})
}

func TestStreamOpenForLong(t *testing.T) {
	t.Run("SC-29", func(t *testing.T) {
		l, p := NewLedger(), somePod(0, 1)
		r := l.Place(p, Work{Prefill: time.Second, Tokens: 2000, Rank: -1}, 0)
		r.FirstByte(ms)
		got := l.Load(p, 600_000*ms)
		if got.InFlight != 1 || got.Waiting != 0 || got.Held != 2000 {
			t.Errorf("after ten minutes: %+v", got)
		}
		r.End(600_001 * ms)
		if got := l.Means(600_001 * ms).Residence; got != 10*time.Minute {
			t.Errorf("residence %v", got)
		}
	})
}

func TestSinceScrape(t *testing.T) {
	l, p := NewLedger(), somePod(0, 1)
	l.Place(p, seconds(0.1), 100*ms)
	answered := l.Place(p, seconds(0.2), 200*ms)
	l.Place(p, seconds(0.3), 300*ms)
	l.Place(p, seconds(0.4), 400*ms)
	for _, c := range []struct {
		scraped      int64
		since, there int
		work         time.Duration
	}{
		{50 * ms, 4, 0, 1000 * time.Millisecond},
		{100 * ms, 3, 1, 900 * time.Millisecond}, // placed at the instant of the scrape: seen by it
		{250 * ms, 2, 2, 700 * time.Millisecond},
		{400 * ms, 0, 4, 0},
	} {
		got := l.LoadSince(p, 500*ms, c.scraped)
		if got.Since != c.since || got.SinceWork != c.work || got.AtScrape != c.there {
			t.Errorf("scrape at %d ms: %+v, want %+v", c.scraped/ms, got, c)
		}
	}
	answered.FirstByte(350 * ms)
	if got := l.LoadSince(p, 500*ms, 250*ms); got.Since != 2 || got.AtScrape != 2 {
		t.Errorf("answered since the scrape, yet it waited then: %+v", got)
	}
	if got := l.LoadSince(p, 500*ms, 150*ms); got.Since != 2 || got.AtScrape != 1 {
		t.Errorf("placed and answered since the scrape: %+v", got)
	}
}

func TestMove(t *testing.T) {
	l, a, b := NewLedger(), somePod(0, 1), somePod(1, 2)
	r := l.Place(a, Work{Prefill: time.Second, Tokens: 700, Rank: -1}, 0)
	r.Move(b, 100*ms)
	wantCounts(t, l, a, 0, 0)
	wantCounts(t, l, b, 1, 1)
	wantQueue(t, l, b, 100*ms, 1)
	if l.Load(a, 0).Held != 0 || l.Load(b, 0).Held != 700 {
		t.Error("held tokens did not move")
	}
	r.FirstByte(200 * ms)
	r.Move(a, 300*ms) // after the first byte only the flight moves
	wantCounts(t, l, a, 1, 0)
	wantCounts(t, l, b, 0, 0)
	wantQueue(t, l, a, 300*ms, 0)
	r.Move(a, 310*ms)
	wantCounts(t, l, a, 1, 0)
	r.End(400 * ms)
	r.Move(b, 500*ms)
	wantCounts(t, l, a, 0, 0)
	wantCounts(t, l, b, 0, 0)
}

func TestMeans(t *testing.T) {
	l, p := NewLedger(), somePod(0, 1)
	for _, s := range []float64{1, 2, 3} {
		l.Place(p, seconds(s), 0)
	}
	if got := l.Means(0).Prefill; got != 2*time.Second {
		t.Errorf("mean of 1, 2, 3 s = %v", got)
	}
	for range 2000 {
		l.Place(p, seconds(5), 0)
	}
	if got := l.Means(0).Prefill.Seconds(); got < 4.999 || got > 5 {
		t.Errorf("the mean does not forget: %v", got)
	}
	aborted := l.Place(p, seconds(1), 0)
	aborted.End(9000 * ms)
	if got := l.Means(0).Residence; got != 0 {
		t.Errorf("a request without a first byte stayed %v", got)
	}
}

// Until as many have ended as are in flight, the ages of these bound the mean from
// below: at any moment a request is half through.
func TestResidenceBeforeMostHaveEnded(t *testing.T) {
	l, p := NewLedger(), somePod(0, 1)
	began := int64(2e18) // as a clock counts them: sums of such wrap around
	var list []*Placement
	for i := range int64(20) {
		list = append(list, l.Place(p, seconds(1), began+i*1000*ms))
	}
	want := func(at int64, residence time.Duration) {
		t.Helper()
		if got := l.Means(began + at*ms).Residence; got != residence {
			t.Errorf("after %d ms: %v, want %v", at, got, residence)
		}
	}
	want(19_000, 19*time.Second) // 0 to 19 s old
	list[19].FirstByte(began + 19_000*ms)
	list[19].End(began + 20_000*ms)
	want(20_000, 22*time.Second)       // not the second of the one that ended
	list[0].End(began + 20_000*ms)     // nothing is learned from it
	list[1].Move(somePod(1, 2), began) // and a request that moves is as old as it was
	want(20_000, 21*time.Second)
	for _, r := range list[1:10] {
		r.FirstByte(began + 20_000*ms)
		r.End(began + 23_000*ms)
	}
	want(23_000, 2800*time.Millisecond) // of ten that ended; nine are in flight
}

func TestLoadAllocatesNothing(t *testing.T) {
	l, p := NewLedger(), somePod(0, 1)
	for i := range int64(20) {
		l.Place(p, seconds(1), i*ms)
	}
	if n := testing.AllocsPerRun(100, func() { l.LoadSince(p, 50*ms, 5*ms) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Many goroutines place, answer, move, end and read at once; -race watches, and
// in the end nothing is left.
func TestLedgerConcurrent(t *testing.T) {
	l := NewLedger()
	pods := []*pod.Pod{somePod(0, 1), somePod(1, 2), somePod(2, 3)}
	prompt := &block.Prompt{Tokens: make([]uint32, 3000), Cut: -1}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range int64(200) {
				p := pods[(int64(g)+i)%3]
				r := l.Place(p, Work{Prefill: time.Millisecond, Prompt: prompt, Tokens: 3000, Rank: -1}, i)
				var paths sync.WaitGroup
				paths.Go(func() { r.FirstByte(i + 1) })
				paths.Go(func() { r.Move(pods[i%3], i+2) })
				paths.Go(func() { r.End(i + 3) })
				l.LoadSince(p, i, i-5)
				l.Means(i)
				paths.Wait()
				r.End(i + 4)
			}
		})
	}
	all.Wait()
	for _, p := range pods {
		got := l.LoadSince(p, 1<<60, 1<<60)
		got.Circuit.Answered = 0 // grows as long as the pod lives
		if got != (Load{}) {
			t.Errorf("pod %d: %+v left", p.ID, got)
		}
	}
}

// Behind an image the ids do not tell the content: two prompts that agree on
// them share nothing there.
func TestHeldStopsAtCut(t *testing.T) {
	l, p := NewLedger(), somePod(0, 1)
	prompt := &block.Prompt{Tokens: make([]uint32, 4*chunkTokens), Cut: chunkTokens + 1}
	w := Work{Prompt: prompt, Tokens: len(prompt.Tokens), Rank: -1}
	l.Place(p, w, 0)
	l.Place(p, w, 0)
	if got, want := l.Load(p, 0).Held, int64(7*chunkTokens); got != want {
		t.Errorf("held %d tokens, want %d: one chunk shared, three of each not", got, want)
	}
	other := *prompt
	other.Salt = "another tenant"
	l.Place(p, Work{Prompt: &other, Tokens: len(other.Tokens), Rank: -1}, 0)
	if got, want := l.Load(p, 0).Held, int64(11*chunkTokens); got != want {
		t.Errorf("held %d tokens, want %d: another salt shares nothing", got, want)
	}
}

// However long a request is said to take, its pod's queue grows with each, and is
// gone with the last.
func TestQueueOfTheLongestPrefills(t *testing.T) {
	l, p := NewLedger(), somePod(0, 1)
	const now = 1_800_000_000_000 * ms // some day of 2027
	var all []*Placement
	before := Load{}
	for range 1000 {
		all = append(all, l.Place(p, Work{Prefill: math.MaxInt64, Nominal: math.MaxInt64, Rank: -1}, now))
		got := l.LoadSince(p, now, now-ms)
		if got.Queue <= before.Queue || got.SinceWork <= before.SinceWork {
			t.Fatalf("%d requests: %v behind, %v placed since; with one less %v and %v", len(all), got.Queue, got.SinceWork, before.Queue, before.SinceWork)
		}
		before = got
	}
	for _, r := range all {
		r.End(now)
	}
	wantQueue(t, l, p, now, 0)
}
