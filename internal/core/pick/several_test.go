package pick

import (
	"math/rand"
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
)

// several is a request of these prompts.
func (f *fleet) several(prompts ...[]uint32) *Query {
	q := f.query(prompts[0], start)
	for _, p := range prompts[1:] {
		q.Further = append(q.Further, block.Prompt{Model: model, Tokens: p, Cut: -1})
	}
	q.Prompts = len(prompts)
	return q
}

// A request goes where its prompts find most together, whichever of them it is.
func TestSeveralPromptsAddUp(t *testing.T) {
	a, b := tokens(1, 40*blockSize+3), tokens(2, 50*blockSize+3)
	f := newFleet(t, 4)
	f.store(1, event.TierGPU, a, 0, 34)
	f.store(2, event.TierGPU, b, 0, 36)
	f.store(3, event.TierGPU, a, 0, 16)
	f.store(3, event.TierHost, b, 0, 30)
	for name, c := range map[string]struct {
		prompts [][]uint32
		cached  [4]int // blocks, by pod
		host    int    // of the last
		winner  string
	}{
		"unknown, and known":        {[][]uint32{tokens(9, 90), b}, [4]int{0, 0, 36, 30}, 30, "pod-2"},
		"known, and unknown":        {[][]uint32{a, tokens(9, 90)}, [4]int{0, 34, 0, 16}, 0, "pod-1"},
		"both, of which one is off": {[][]uint32{a, b}, [4]int{0, 34, 36, 46}, 30, "pod-3"},
		"two of the same":           {[][]uint32{a, b, a}, [4]int{0, 68, 36, 62}, 30, "pod-1"},
		"a beginning":               {[][]uint32{a[:330], b[:340], tokens(9, 90)}, [4]int{0, 20, 21, 37}, 21, "pod-3"},
	} {
		card := f.decide(f.several(c.prompts...))
		for i := range card.Rows {
			r := &card.Rows[i]
			if r.Cached != c.cached[i]*blockSize || r.Uncached != card.Tokens-r.Cached || int(r.Match.Depth) != c.cached[i] || r.Match.Announced != r.Match.Depth {
				t.Errorf("%s: pod %d: %d tokens cached, %+v; want %d blocks", name, i, r.Cached, r.Match, c.cached[i])
			}
		}
		if got := card.Rows[3].Fetched[event.TierHost]; got != c.host*blockSize {
			t.Errorf("%s: %d tokens come from the host, want %d blocks", name, got, c.host)
		}
		if winner(card) != c.winner {
			t.Errorf("%s: %s is picked:\n%s", name, winner(card), card)
		}
		if x := card.Explanation(); x.Prompts != len(c.prompts) || x.Blocks != nil {
			t.Errorf("%s: %d prompts, %v blocks", name, x.Prompts, x.Blocks)
		}
	}
}

// Of each prompt the block with its last token is computed again. Coming off the sum it
// would be one block for all of them.
func TestSeveralPromptsAreEachComputedToTheEnd(t *testing.T) {
	f := newFleet(t, 1)
	a, b := tokens(1, 4*blockSize), tokens(2, 6*blockSize)
	f.store(0, event.TierGPU, a, 0, 4)
	f.store(0, event.TierGPU, b, 0, 3)
	f.store(0, event.TierHost, b, 3, 6)
	r := f.decide(f.several(a, b, tokens(3, 100*blockSize))).Rows[0]
	if r.Cached != 8*blockSize || r.Match.Fastest != [event.NumTiers]int32{event.TierGPU: 6, event.TierHost: 2} || r.Fetched[event.TierHost] != 2*blockSize {
		t.Errorf("%d tokens cached, %+v, %v", r.Cached, r.Match, r.Fetched)
	}
	short := f.decide(f.several(a[:blockSize], b[:blockSize])).Rows[0]
	if short.Cached != 0 || short.Match.Rank >= 0 || short.Reason != reason.PromptShort {
		t.Errorf("two prompts of a block each: %+v", short)
	}
}

// A beginning that prompts of one request share is not taken to be cached for the second
// of them.
func TestSeveralPromptsThatBeginAlike(t *testing.T) {
	f := newFleet(t, 2)
	a := tokens(1, 800)
	q := f.several(a, a, a[:400])
	card, p := f.place(q)
	if r := card.WinnerRow(); r.Cached != 0 || r.Uncached != 2000 {
		t.Errorf("%d tokens cached", r.Cached)
	}
	if held := f.Load.Load(card.WinnerRow().Pod, start).Held; held != 2000-512 { // the pool has it once, to the grain of a chunk
		t.Errorf("%d tokens held", held)
	}
	// The next request finds all of it on its way.
	again := f.decide(f.several(tokens(5, 40), a))
	if r := again.Rows[card.Winner]; r.Cached != 784 || r.Match.Expected() != 49 {
		t.Errorf("%+v", r.Match)
	}
	p.End(start)
	if s, _ := f.Index.Member(card.WinnerRow().Match.owner(card.WinnerRow().Pod)); s.Expectations != 0 {
		t.Errorf("%d prompts are expected of nobody", s.Expectations)
	}
}

// What the prompts of random requests find together is what they find one by one, on
// fleets of several ranks and tiers.
func TestSeveralPromptsAreThoseOneByOne(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for range 200 {
		f := newFleet(t, 5)
		pool := make([][]uint32, 6)
		for i := range pool {
			pool[i] = tokens(i+1, 1+rnd.Intn(20*blockSize))
			if whole := len(pool[i]) / blockSize; whole > 0 {
				for m := range 5 {
					if n := rnd.Intn(whole + 1); n > 0 {
						tier := event.TierGPU
						if rnd.Intn(3) == 0 {
							tier = event.TierHost
						}
						f.store(f.pod(m).Members[0], tier, pool[i], 0, n)
					}
				}
			}
		}
		prompts := make([][]uint32, 2+rnd.Intn(4))
		var cached, host [5]int
		for i := range prompts {
			prompts[i] = pool[rnd.Intn(len(pool))]
			for k, r := range f.decide(f.query(prompts[i], start)).Rows {
				cached[k], host[k] = cached[k]+r.Cached, host[k]+r.Fetched[event.TierHost]
			}
		}
		for k, r := range f.decide(f.several(prompts...)).Rows {
			if r.Cached != cached[k] || r.Fetched[event.TierHost] != host[k] {
				t.Fatalf("pod %d: %d cached, %d of them on the host; one by one %d, %d", k, r.Cached, r.Fetched[event.TierHost], cached[k], host[k])
			}
		}
	}
}

// Each prompt is a prefill of its own, and none may be longer than a pod's context.
func TestSeveralPromptsAreServedOneByOne(t *testing.T) {
	f := newFleet(t, 1)
	f.policy.Calibration.Quadratic = 1e-9
	one := f.decide(f.query(tokens(1, 4000), start))
	q := f.several(tokens(1, 4000), tokens(2, 4000), tokens(3, 4000))
	all := f.decide(q)
	if x := all.Rows[0].Prefill / one.Rows[0].Prefill; x < 2.999 || x > 3.001 {
		t.Errorf("three equal prompts take %.3f times as long as one", x)
	}
	w := all.Work(q)
	if w.Nominal != 0 || w.Tokens != 12_000 || len(w.Further) != 2 || one.Work(f.query(tokens(1, 4000), start)).Nominal == 0 {
		t.Errorf("%+v", w)
	}
	f.pod(0).Spec.MaxContext = 4096
	if v := f.decide(q).Rows[0].Verdict; v != Scored {
		t.Errorf("verdict %v of prompts that fit", v)
	}
	long := f.decide(f.several(tokens(1, 10), tokens(2, 4097)))
	if r := long.Rows[0]; r.Verdict != TooLong || r.Value != 4097 {
		t.Errorf("verdict %v, %v tokens", r.Verdict, r.Value)
	}
}

// What is expected in blocks of one size is not added to what was announced in another's,
// which the engine has.
func TestSeveralPromptsInBlocksOfTwoSizes(t *testing.T) {
	f := newFleet(t, 1)
	a, b := tokens(1, 200), tokens(2, 200)
	f.Index.Expect(0, &block.Prompt{Model: model, Tokens: a, Cut: -1})
	e := event.Event{Kind: event.Stored, BlockSize: 64, LoRAID: -1, Tokens: b[:128], Hashes: []uint64{7, 8}}
	f.Index.Apply(0, &e, start)
	if r := f.decide(f.several(a, b)).Rows[0]; r.Cached != 192 || r.Match.Size != blockSize || r.Match.Depth != 12 {
		t.Errorf("%d tokens cached, %+v", r.Cached, r.Match)
	}
}

// Several prompts have no one prefix that a copy would be made of, and each begins a block
// of output.
func TestSeveralPromptsCopyNothing(t *testing.T) {
	f := newFleet(t, 2)
	a := tokens(1, 1600)
	f.store(0, event.TierGPU, a, 0, 100)
	for range 5 {
		f.Fleet.Place(f.pod(0), view.Work{Prompt: &block.Prompt{Model: model, Tokens: a, Cut: -1}, Tokens: len(a), Rank: 0}, start)
	}
	one, two := f.decide(f.query(a, start)), f.decide(f.several(a, tokens(2, 100)))
	if one.basis.holders.sharers != 5 || two.basis.holders.sharers != 0 {
		t.Errorf("%d requests share one prompt, %d two", one.basis.holders.sharers, two.basis.holders.sharers)
	}
	if r := two.Rows[1]; r.PoolAdds != 1700+2*blockSize {
		t.Errorf("they add %v tokens to the pool", r.PoolAdds)
	}
}

// Prompts that nobody has read are so many prefills too.
func TestSeveralUnknownPrompts(t *testing.T) {
	f := newFleet(t, 1)
	q := f.query(nil, start)
	q.PromptTokens, q.Prompts = 44_000, 11
	card := f.decide(q)
	c := f.policy.Calibration
	if want := 11*c.Constant + 44_000/c.TokensPerSecond; card.Rows[0].Prefill < 0.999*want || card.Rows[0].Prefill > 1.001*want || card.Tokens != 44_000 {
		t.Errorf("%d tokens take %.3f s, want %.3f", card.Tokens, card.Rows[0].Prefill, want)
	}
}

// A request has its reason where none of its prompts finds anything: what is true of the
// longest, and that one of them was lost.
func TestWhySeveralPromptsFindNothing(t *testing.T) {
	a, b := tokens(1, 400), tokens(2, 400)
	f := newFleet(t, 1)
	f.store(0, event.TierGPU, b, 0, 25)
	for want, q := range map[reason.Code]*Query{
		reason.NotCached:   f.several(a, tokens(3, 10)),
		reason.PromptShort: f.several(b[:16], b[:9], tokens(3, 10)),
		reason.None:        f.several(a, b),
	} {
		if r := f.decide(q).Rows[0]; r.Reason != want || (r.Cached > 0) != (want == reason.None) {
			t.Errorf("reason %q, %d tokens cached; want %q", r.Reason, r.Cached, want)
		}
	}
	f.Index.Apply(0, &event.Event{Kind: event.Cleared}, start-5*ms)
	f.Index.Emptied(0, start-5*ms)
	if r := f.decide(f.several(a, b)).Rows[0]; r.Reason != reason.Cleared || r.Cleared != start-5*ms {
		t.Errorf("reason %q", r.Reason)
	}
}

func TestSeveralPromptsAllocateNothing(t *testing.T) {
	f := busyFleet(t, 64)
	q := f.several(tokens(3, 2000), tokens(4, 2000), tokens(3, 900))
	v, c := f.View(), &Card{}
	Decide(&v, q, f.policy, c)
	if n := testing.AllocsPerRun(50, func() { Decide(&v, q, f.policy, c) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
