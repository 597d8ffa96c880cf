package feed

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/testdata"
)

// pullRig is a feed that pulls from one engine.
type pullRig struct {
	*testing.T
	e     *trtllm
	feed  *Feed
	fleet *view.Fleet
	log   *testdata.Buffer
}

func startPull(t *testing.T, e *trtllm, ranks int) *pullRig {
	t.Helper()
	r := &pullRig{T: t, e: e, log: &testdata.Buffer{}}
	r.feed, r.fleet = startFeed(t, Options{Log: slog.New(slog.NewTextHandler(r.log, nil))})
	r.feed.Apply([]pod.Spec{{
		Name: "p", Address: strings.TrimPrefix(e.URL, "http://"), Engine: pod.EngineTRTLLM, Model: "m",
		Ranks: ranks, Pull: 2 * time.Millisecond,
	}})
	return r
}

func (r *pullRig) member(rank int) pod.Member {
	return r.fleet.Pods.Snapshot().ByName("p").Members[rank]
}

func (r *pullRig) sync(rank int) view.Sync { return r.fleet.Sync.Get(r.member(rank)) }

func (r *pullRig) counters(rank int) Counters {
	for _, c := range r.feed.Counters() {
		if c.Rank == rank {
			return c
		}
	}
	return Counters{}
}

// until waits for a condition on the first rank's state.
func (r *pullRig) until(what string, ok func(s view.Sync, c Counters) bool) {
	r.Helper()
	eventually(r.T, what, func() bool { return ok(r.sync(0), r.counters(0)) }, func() string {
		return fmt.Sprintf("%+v, %+v, log %s", r.sync(0), r.counters(0), r.log)
	})
}

// caughtUp waits until the last event that the engine has said is shown.
func (r *pullRig) caughtUp() {
	r.Helper()
	last := r.e.said() - 1
	r.until(fmt.Sprint("event ", last), func(s view.Sync, _ Counters) bool { return s.LastSeq == last && s.Connected })
}

func (r *pullRig) depth(rank int, tokens []uint32) int {
	var out index.Result
	r.fleet.Index.Lookup(&block.Prompt{Model: "m", Tokens: tokens, Cut: -1}, &out)
	for _, x := range out.Matches {
		if x.Member == r.member(rank) {
			return int(x.Depth)
		}
	}
	return 0
}

func countTo(from, n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(from + i)
	}
	return out
}

// TestPullFollows: what an engine has cached is what the index says, on the GPU
// and below, through evictions, moves and partial blocks.
func TestPullFollows(t *testing.T) {
	e := newTRTLLM(t)
	r := startPull(t, e, 1)
	rnd := rand.New(rand.NewPCG(1, 2))
	prompts := [][]uint32{}
	for i := range 12 {
		base := countTo(1000*(i%3), 4*(2+i%3))
		prompts = append(prompts, append(append([]uint32{}, base...), countTo(100000+1000*i, 3+5*(i%4))...))
	}
	hits, onHost := 0, 0
	for range 200 {
		p := prompts[rnd.IntN(len(prompts))]
		p = p[:1+rnd.IntN(len(p))]
		hits += e.serve(p)
		if rnd.IntN(4) > 0 { // several requests between two reads
			continue
		}
		r.caughtUp()
		for i, q := range prompts {
			if got, want := r.depth(0, q), e.cached(q); got != want {
				t.Fatalf("prompt %d: depth %d, the engine has %d blocks", i, got, want)
			}
		}
		if s, _ := r.fleet.Index.Member(r.member(0)); s.Blocks[event.TierHost] > 0 {
			onHost++
		}
	}
	s, _ := r.fleet.Index.Member(r.member(0))
	if hits == 0 || onHost == 0 || s.Unknown > 0 || s.BlockSize != 4 {
		t.Errorf("%d hits, host in use %d times, %+v", hits, onHost, s)
	}
	if got := r.sync(0); got.State != view.Live {
		t.Errorf("%+v", got)
	}
	c := r.counters(0)
	if c.Stored == 0 || c.Removed == 0 || len(c.Faults)+len(c.Purges)+len(c.Skips)+len(c.Unknown) > 0 || c.Connections != 1 {
		t.Errorf("%+v", c)
	}
	if n := strings.Count(r.log.String(), "takes them away"); n != 1 {
		t.Errorf("said %d times that reading is destructive:\n%s", n, r.log)
	}
	r.feed.mu.Lock()
	owner := func() index.Owner {
		k := r.feed.pods["p"]
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.owner
	}()
	r.feed.mu.Unlock()
	if owner.Blocks != e.gpu {
		t.Errorf("the engine has %d blocks, known are %d", e.gpu, owner.Blocks)
	}
}

func TestPullStates(t *testing.T) {
	prompt := countTo(0, 13) // three blocks and a partial one
	filled := func(t *testing.T) *pullRig {
		e := newTRTLLM(t)
		r := startPull(t, e, 1)
		e.serve(prompt)
		r.caughtUp()
		if got := r.depth(0, prompt); got != 3 {
			t.Fatalf("depth %d", got)
		}
		return r
	}
	t.Run("empty answers are normal", func(t *testing.T) {
		r := filled(t)
		from := r.e.polled()
		r.until("30 reads", func(view.Sync, Counters) bool { return r.e.polled() > from+30 })
		if s, c := r.sync(0), r.counters(0); s.State != view.Live || len(c.Faults)+len(c.Purges) > 0 || r.depth(0, prompt) != 3 {
			t.Errorf("%+v %+v", s, c)
		}
	})
	t.Run("events lost to a full buffer", func(t *testing.T) {
		r := filled(t)
		r.e.mu.Lock()
		r.e.buffer = 1
		for range 3 { // as one step of the engine: no read comes in between
			r.e.say("updated", map[string]any{"block_hash": 1, "cache_level": nil, "priority": nil})
		}
		r.e.mu.Unlock()
		r.until("a gap", func(s view.Sync, c Counters) bool { return c.Purges[purgeGap] == 1 && s.State == view.Partial })
		if s := r.sync(0); r.depth(0, prompt) != 0 || s.Lost != 2 {
			t.Errorf("depth %d, %+v", r.depth(0, prompt), s)
		}
		r.e.mu.Lock()
		r.e.buffer = 100
		r.e.mu.Unlock()
		fresh := countTo(500, 12)
		r.e.serve(fresh)
		r.caughtUp()
		if got := r.depth(0, fresh); got != 3 {
			t.Errorf("depth %d behind the gap", got)
		}
	})
	t.Run("another reader", func(t *testing.T) {
		r := filled(t)
		var steal func(w http.ResponseWriter, page []byte)
		steal = func(w http.ResponseWriter, page []byte) {
			if string(page) == "[]" { // nothing to take yet
				r.e.next(steal)
			}
			fmt.Fprint(w, "[]")
		}
		r.e.next(steal)
		r.e.serve(countTo(500, 12))
		r.until("a theft", func(view.Sync, Counters) bool { return !r.e.hasEvents() })
		r.e.serve(countTo(900, 12))
		r.until("a gap", func(s view.Sync, c Counters) bool { return c.Purges[purgeGap] == 1 && s.State == view.Partial })
	})
	t.Run("a new engine", func(t *testing.T) {
		r := filled(t)
		before := r.sync(0).LastSeq
		r.e.start()
		r.e.serve(countTo(500, 12))
		// Numbers the old engine never came to: what is shown of it cannot pass
		// for these.
		for r.e.said()-1 <= before {
			r.e.serve(countTo(int(1000*r.e.said()), 12))
		}
		r.until("a restart", func(s view.Sync, c Counters) bool { return c.Purges[purgeRestart] == 1 })
		r.caughtUp()
		if got := r.depth(0, countTo(500, 12)); got != 3 || r.depth(0, prompt) != 0 || r.sync(0).State != view.Live {
			t.Errorf("depth %d, of before %d, %+v", got, r.depth(0, prompt), r.sync(0))
		}
	})
	t.Run("joined late", func(t *testing.T) {
		e := newTRTLLM(t)
		e.serve(prompt)
		e.drain()
		r := startPull(t, e, 1)
		e.serve(append(append([]uint32{}, prompt[:12]...), countTo(700, 8)...))
		fresh := countTo(500, 12)
		e.serve(fresh)
		r.caughtUp()
		if got := r.depth(0, fresh); got != 3 || r.depth(0, prompt) != 0 || r.sync(0).State != view.Partial {
			t.Errorf("depth %d, of before %d, %+v", got, r.depth(0, prompt), r.sync(0))
		}
	})
	unavailable := func(w http.ResponseWriter, _ []byte) { http.Error(w, "busy", http.StatusServiceUnavailable) }
	t.Run("busy for a moment", func(t *testing.T) {
		r := filled(t)
		r.e.next(unavailable, unavailable)
		r.until("two faults", func(_ view.Sync, c Counters) bool { return c.Faults["protocol"] == 2 })
		from := r.e.polled()
		r.until("reads", func(view.Sync, Counters) bool { return r.e.polled() > from+1 })
		if c := r.counters(0); c.Connections != 1 || len(c.Purges) > 0 || r.depth(0, prompt) != 3 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("away for longer", func(t *testing.T) {
		r := filled(t)
		r.e.next(unavailable, unavailable, unavailable, unavailable)
		r.until("a second connection", func(s view.Sync, c Counters) bool { return c.Connections == 2 && c.Purges[purgeReconnect] == 1 })
		if r.depth(0, prompt) != 0 {
			t.Error("blocks of an engine that may be another one")
		}
	})
	t.Run("gone", func(t *testing.T) {
		r := filled(t)
		r.e.Close()
		r.until("connecting", func(s view.Sync, c Counters) bool { return !s.Connected && c.Faults["dial"] > 0 })
	})
	t.Run("an answer cut short", func(t *testing.T) {
		r := filled(t)
		more := countTo(500, 12)
		cut := make(chan struct{})
		r.e.next(func(w http.ResponseWriter, page []byte) {
			defer close(cut)
			_, _ = io.WriteString(w, strings.TrimSuffix(string(page), "]")+`,{"event_id":`)
		})
		r.e.serve(more)
		<-cut
		r.until("a cut", func(s view.Sync, c Counters) bool {
			return c.Faults["truncated"]+c.Faults["protocol"] == 1 && c.Connections == 2 && c.Purges[purgeReconnect] == 1
		})
	})
	t.Run("no such endpoint", func(t *testing.T) {
		e := newTRTLLM(t)
		missing := func(w http.ResponseWriter, _ []byte) { http.Error(w, "no", http.StatusNotFound) }
		e.next(missing, missing, missing, missing, missing)
		r := startPull(t, e, 1)
		r.until("the reason", func(s view.Sync, _ Counters) bool {
			return !s.Connected && strings.Contains(s.Detail, "HTTP 404")
		})
	})
}

// An answer is read up to 64 MiB: this one has two bytes more. (Not over a socket,
// where a busy machine would run into the time limit.)
func TestPullIsBounded(t *testing.T) {
	answer := []io.Reader{strings.NewReader("[")}
	for range 64 {
		answer = append(answer, strings.NewReader(strings.Repeat(" ", 1<<20)))
	}
	err := new(puller).page(t.Context(), io.MultiReader(append(answer, strings.NewReader("]"))...))
	wantFault(t, err, FaultOversize, "more than 67108864 bytes")
}

func TestPullRanks(t *testing.T) {
	e := newTRTLLM(t)
	r := startPull(t, e, 2)
	say := func(rank int, id uint64, prompt []uint32) {
		e.mu.Lock()
		e.rank, e.nextID = rank, id
		e.mu.Unlock()
		e.serve(prompt)
	}
	zero, one := countTo(0, 9), countTo(100, 13)
	say(0, 1, zero)
	say(1, 0, one) // each rank numbers its own
	say(2, 0, countTo(200, 9))
	r.until("both ranks", func(view.Sync, Counters) bool { return r.depth(0, zero) == 2 && r.depth(1, one) == 3 })
	r.until("a rank too many", func(_ view.Sync, c Counters) bool { return c.RankMismatch == 1 })
	if r.depth(1, zero) != 0 || r.depth(0, one) != 0 {
		t.Error("a block on a rank that does not have it")
	}
	if !strings.Contains(r.log.String(), "set ranks") {
		t.Errorf("log:\n%s", r.log)
	}
	for rank := range 2 {
		if c := r.counters(rank); len(c.Purges) > 0 {
			t.Errorf("rank %d: %+v", rank, c)
		}
	}
}

// TestPullIsForWhoRoutes: a tap beside serve would take its events.
func TestPullIsForWhoRoutes(t *testing.T) {
	e := newTRTLLM(t)
	log := &testdata.Buffer{}
	f, _ := startFeed(t, Options{Discard: true, Log: slog.New(slog.NewTextHandler(log, nil))})
	f.Apply([]pod.Spec{{Name: "p", Address: strings.TrimPrefix(e.URL, "http://"), Engine: pod.EngineTRTLLM, Model: "m", Pull: time.Millisecond}})
	eventually(t, "a word", func() bool { return strings.Contains(log.String(), "takes them away from serve") }, log.String)
	f.Close()
	if e.polled() > 0 {
		t.Error("events were read")
	}
}

// TestUnknownNamesAreCapped: the names come from the wire.
func TestUnknownNamesAreCapped(t *testing.T) {
	var c Counters
	for i := range 100 {
		c.unknown(event.Unknown{Name: fmt.Sprint("tag ", i, "\x00\xff"), Count: 2})
	}
	c.unknown(event.Unknown{Name: "tag 3\x00\xff", Count: 1})
	if len(c.Unknown) != maxUnknown || c.Unknown["tag 3 ?"] != 3 || c.Unknown[event.OtherUnknown] != 2*(100-maxUnknown+1) {
		t.Errorf("%v", c.Unknown)
	}
}
