package view

import (
	"math/rand"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// TestStandingSaysWhatTheLockWould reads accounts after random changes with and
// without their lock, at random times and against random scrapes.
func TestStandingSaysWhatTheLockWould(t *testing.T) {
	used := 0
	for seed := range int64(300) {
		rnd := rand.New(rand.NewSource(seed))
		l, p := NewLedger(), somePod(0, 1)
		var live []*Placement
		now := int64(1000)
		for range 60 {
			now += int64(rnd.Intn(10)) * ms
			changeAtRandom(l, rnd, &live, now)
			a := l.account(p)
			for range 6 {
				at, scraped := now+int64(rnd.Intn(20))*ms, now-int64(rnd.Intn(60)-5)*ms
				if rnd.Intn(8) == 0 {
					scraped = lastHeard
				}
				var got, want Load
				ok := a.standing.read(p.Epoch, at, scraped, &got)
				a.read(at, scraped, -1, &want)
				if !ok {
					continue
				}
				if used++; got != want {
					t.Fatalf("seed %d at %d, scraped %d: published %+v, account %+v", seed, at, scraped, got, want)
				}
			}
		}
	}
	if used < 10_000 {
		t.Errorf("%d readings were published: the test compares little", used)
	}
}

// changeAtRandom does one thing that can happen to pod 0's account, each with a
// part in what a standing tells.
func changeAtRandom(l *Ledger, rnd *rand.Rand, live *[]*Placement, now int64) {
	p := somePod(0, 1)
	if len(*live) == 0 || rnd.Intn(3) == 0 {
		prior := Prior{Model: "m", TokensPerSecond: 1}
		w := Work{
			Prefill: time.Duration(rnd.Intn(50)) * time.Millisecond, Rank: -1, Prior: prior,
			Limits: Limits{Depth: 4, Errors: 2, Cooldown: 20 * time.Millisecond, Longest: time.Second, Probes: 1},
		}
		w.Nominal, w.Tokens = w.Prefill, rnd.Intn(1000)
		*live = append(*live, l.Place(p, w, now))
		return
	}
	i := rnd.Intn(len(*live))
	switch r := (*live)[i]; rnd.Intn(7) {
	case 0, 1:
		r.FirstByte(now)
	case 2:
		r.Unseen(now + int64(rnd.Intn(30))*ms)
	case 3:
		l.Presume(p, Scrape{At: now - int64(rnd.Intn(20))*ms, Waiting: rnd.Intn(3), Running: -1}, now)
	case 4:
		r.Status(rnd.Intn(4) == 0, now)
	default:
		r.End(now)
		*live = append((*live)[:i], (*live)[i+1:]...)
	}
}

// TestStandingIsOfOneMoment reads what is published anew all the time. Every word of
// one publication has the same number, so that a reading mixed of two shows.
func TestStandingIsOfOneMoment(t *testing.T) {
	a := newAccount(somePod(0, 1))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			var x Load
			for {
				select {
				case <-stop:
					return
				default:
				}
				if a.standing.read(a.epoch, 0, 0, &x) && (x.InFlight != x.Waiting || x.Since != x.Waiting || int(x.SinceWork) != x.Waiting ||
					int(x.Queue) != x.Waiting || x.AtScrape != x.Waiting || int(x.Held) != x.Waiting || x.Circuit.Lost != x.Waiting || x.Circuit.Answered != x.Waiting) {
					t.Errorf("of two moments: %+v", x)
					return
				}
			}
		})
	}
	for i := range 300_000 {
		a.mu.Lock()
		a.lanes[0].finish = int64(i)
		a.publish(&Load{
			InFlight: i, Waiting: i, Since: i, SinceWork: time.Duration(i), AtScrape: i, PlacedAtScrape: i, Held: int64(i),
			Circuit: Circuit{Errors: i, Lost: i, Answered: i},
		}, always())
		a.mu.Unlock()
	}
	close(stop)
	readers.Wait()
}

// TestAccountUnderWriters reads an account that others change, all with the same
// work: with and without the lock a reading is of one moment.
func TestAccountUnderWriters(t *testing.T) {
	const work = 3 * time.Millisecond
	l, p := NewLedger(), somePod(0, 1)
	stop := make(chan struct{})
	var writers, readers sync.WaitGroup
	for range 2 {
		writers.Go(func() {
			for range 2000 {
				r := l.Place(p, Work{Prefill: work, Rank: -1}, 10)
				next := l.Place(p, Work{Prefill: work, Rank: -1}, 10)
				r.FirstByte(10)
				r.End(10)
				next.End(10)
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				x := l.LoadSince(p, 10, 5)
				if x.SinceWork != time.Duration(x.Since)*work || x.Since != x.Waiting || x.Queue != x.SinceWork || x.Waiting > x.InFlight {
					t.Errorf("of two moments: %+v", x)
					return
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	if x := l.LoadSince(p, 10, 10); x.InFlight != 0 || x.Queue != 0 {
		t.Errorf("left: %+v", x)
	}
}

// TestStandingLayout: two cache lines each, which none shares with another.
func TestStandingLayout(t *testing.T) {
	var l Ledger
	if size, at := unsafe.Sizeof(l.standings[0]), unsafe.Offsetof(l.standings); size != 128 || at != 0 {
		t.Errorf("a standing has %d bytes, the first lies at %d; want 128 and 0", size, at)
	}
}

// TestStandingOfAPodThatCameBack: the accounts of a pod's lives share a standing, and
// late ends and readings of the earlier life leave no trace in what the later shows.
func TestStandingOfAPodThatCameBack(t *testing.T) {
	l, before, after := NewLedger(), somePod(0, 1), somePod(0, 2)
	old := l.Place(before, seconds(1), 10)
	account := old.account
	l.LoadSince(before, 10, 5)
	var x Load
	if !l.Standing(before, 10, 5, &x) || x.InFlight != 1 {
		t.Fatalf("before: %+v", x)
	}
	if l.Standing(after, 10, 5, &x) {
		t.Errorf("a pod that came back finds its earlier account: %+v", x)
	}
	if x := l.LoadSince(after, 10, 5); x != (Load{}) {
		t.Errorf("nothing was placed on it: %+v", x)
	}
	l.Place(after, seconds(2), 10)
	l.Place(after, seconds(2), 10)
	if x := l.LoadSince(after, 10, 5); x.InFlight != 2 {
		t.Errorf("after: %+v", x)
	}
	account.read(10, 5, -1, &x) // by who has an old snapshot
	old.End(11)
	account.read(11, 5, -1, &x)
	if !l.Standing(after, 10, 5, &x) || x.InFlight != 2 || x.Queue != 4*time.Second {
		t.Errorf("after late ends: %+v", x)
	}
	if l.Standing(before, 11, 5, &x) {
		t.Errorf("the earlier account shows: %+v", x)
	}
}
