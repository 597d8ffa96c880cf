package telemetry

import (
	"testing"
	"time"
)

// TestBoardAges is EM-32 and the board's part of EM-31: failures leave the last
// good values, which only get older.
func TestBoardAges(t *testing.T) {
	const ms = int64(time.Millisecond)
	limits := Limits{FreshNs: 2000 * ms, KnownNs: 5000 * ms}
	var b Board
	if got := b.Get(3).State(0, limits); got != Unknown {
		t.Errorf("never scraped: %s", got)
	}
	b.Fail(3, "HTTP 500", 0)
	if got := b.Get(3).State(0, limits); got != Unknown {
		t.Errorf("only failures: %s", got)
	}
	b.Put(3, &Sample{At: 0, Waiting: known(7)})
	for _, c := range []struct {
		at   int64
		want State
	}{{0, Fresh}, {1000, Fresh}, {2000, Fresh}, {2001, Stale}, {3000, Stale}, {5000, Stale}, {5001, Unknown}, {10000, Unknown}} {
		b.Fail(3, "HTTP 500", c.at*ms)
		e := b.Get(3)
		if got := e.State(c.at*ms, limits); got != c.want {
			t.Errorf("EM-32 at %d ms: %s, want %s", c.at, got, c.want)
		}
		if e.Sample == nil || e.Sample.Waiting.V != 7 || e.Err != "HTTP 500" || e.ErrAt != c.at*ms {
			t.Errorf("at %d ms: %+v", c.at, e)
		}
	}
	if e := b.Get(3); e.Mute {
		t.Error("a failure of a page is not a silent pod")
	}
	b.FailMute(3, "connection refused", 10100*ms)
	if e := b.Get(3); !e.Mute || e.Sample == nil || e.Err != "connection refused" {
		t.Errorf("nothing answers: %+v", e)
	}
	b.Put(3, &Sample{At: 11000 * ms})
	if e := b.Get(3); e.Err != "" || e.Mute || e.State(11000*ms, limits) != Fresh {
		t.Errorf("after a good scrape: %+v", e)
	}
	// A reader that began a moment before the scrape takes it; a sample from
	// further ahead would be fresh for as long as that.
	for now, want := range map[int64]State{10_990: Fresh, 10_000: Fresh, 9_999: Unknown, -3_600_000: Unknown} {
		if got := b.Get(3).State(now*ms, limits); got != want {
			t.Errorf("a sample %d ms ahead: %s, want %s", 11_000-now, got, want)
		}
	}
	b.Drop(3)
	if e := b.Get(3); e.Sample != nil || e.Err != "" {
		t.Errorf("after Drop: %+v", e)
	}
}
