package view

import (
	"testing"
	"time"
)

// A pod that has become slow: the estimates say answered, the scrapes say no.
func TestEstimatesNeedAScrape(t *testing.T) {
	l, p := NewLedger(), somePod(0, 1)
	var all []*Placement
	for i := range int64(20) {
		r := l.Place(p, seconds(0.001), i*5*ms)
		r.Unseen(i*5*ms + ms)
		all = append(all, r)
	}
	waiting := func(at, scraped int64, want int) {
		t.Helper()
		if got := l.LoadSince(p, at, scraped).Waiting; got != want {
			t.Errorf("at %d ms: %d wait, want %d", at/ms, got, want)
		}
	}
	waiting(200*ms, 0, 20) // no scrape yet has confirmed anything
	l.Presume(p, Scrape{At: 100 * ms, Waiting: 16, Running: 4}, 110*ms)
	waiting(110*ms, 100*ms, 16)
	if got := l.Load(p, 110*ms).Queue; got != 16*time.Millisecond {
		t.Errorf("queue %v: what was due and waits must be computed yet", got)
	}
	l.Presume(p, Scrape{At: 100 * ms, Waiting: 0, Running: 20}, 120*ms)
	waiting(120*ms, 100*ms, 16) // one scrape is heard once
	// A gauge that lags shows fewer waiting, but none more running.
	l.Presume(p, Scrape{At: 150 * ms, Waiting: 3, Running: 4}, 160*ms)
	waiting(160*ms, 150*ms, 16)
	all[0].End(170 * ms)
	l.Presume(p, Scrape{At: 200 * ms, Waiting: 15, Running: 4}, 210*ms)
	waiting(210*ms, 200*ms, 15)
	l.Presume(p, Scrape{}, 300*ms) // nothing is known any more
	waiting(300*ms, 300*ms, 0)
	for _, r := range all {
		r.End(400 * ms)
	}
	got := l.LoadSince(p, 400*ms, 400*ms)
	got.Circuit = Circuit{}
	if got != (Load{}) {
		t.Errorf("%+v left", got)
	}
}

// A pod that keeps up is not held for queueing between two scrapes: as many
// estimates as the last one confirmed are believed at once.
func TestEstimatesGoOnAtThePaceSeen(t *testing.T) {
	l, p := NewLedger(), somePod(0, 1)
	place := func(from, to int64) {
		for at := from; at < to; at += 10 {
			l.Place(p, seconds(0.001), at*ms).Unseen(at*ms + ms)
		}
	}
	place(1, 101)
	if got := l.LoadSince(p, 101*ms, 0).Waiting; got != 10 {
		t.Errorf("%d wait before the first scrape, want 10", got)
	}
	l.Presume(p, Scrape{At: 110 * ms, Running: 30}, 120*ms)
	place(121, 201)
	if got := l.LoadSince(p, 210*ms, 110*ms).Waiting; got != 0 {
		t.Errorf("%d wait, want none: 8 estimates after 10 confirmed", got)
	}
	if got := l.Load(p, 210*ms).Waiting; got != 0 {
		t.Errorf("%d wait by the last scrape", got)
	}
	place(211, 291)
	if got := l.LoadSince(p, 300*ms, 110*ms).Waiting; got != 6 {
		t.Errorf("%d wait, want 6: 16 estimates after 10 confirmed", got)
	}
}

// The youngest requests are the ones that wait: one whose answer will be seen
// holds its place.
func TestEstimatesKeepTheOrder(t *testing.T) {
	l, p := NewLedger(), somePod(0, 1)
	for i := range int64(3) {
		l.Place(p, seconds(0.001), i*ms) // of these the answer is seen
	}
	for i := range int64(3) {
		l.Place(p, seconds(0.001), (10+i)*ms).Unseen((12 + i) * ms)
	}
	l.Presume(p, Scrape{At: 100 * ms, Waiting: 2, Running: 4}, 110*ms)
	if got := l.Load(p, 110*ms).Waiting; got != 5 {
		t.Errorf("%d wait, want 5: three decode, two queue, one was presumed", got)
	}
}

func TestResidenceCountsFromTheEstimate(t *testing.T) {
	l, p := NewLedger(), somePod(0, 1)
	r := l.Place(p, seconds(0.001), 0)
	r.Unseen(10 * ms)
	r.End(110 * ms)
	if got := l.Means(110 * ms).Residence; got != 100*time.Millisecond {
		t.Errorf("residence %v", got)
	}
}
