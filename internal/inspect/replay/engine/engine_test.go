package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// small has numbers that can be reckoned by hand: blocks of 4 tokens.
func small(blocks int) Profile {
	return Profile{
		Name: "small", Base: 1, PerToken: 0.1, Quadratic: 0.001, PerContext: 0.01, PerSequence: 0.5,
		PoolTokens: 4 * blocks, StepTokens: 8, MaxSequences: 4, BytesPerToken: 10, HostBandwidth: 100, HostLatency: 0.25,
		AdapterLoad: 7,
	}
}

func newSmall(p Profile) *Engine {
	return New(p, Options{BlockSize: 4, Rand: rand.New(rand.NewPCG(1, 1))})
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func seq(id, prompt, output int, blocks ...uint32) *Sequence {
	return &Sequence{ID: id, Prompt: prompt, Output: output, Blocks: blocks}
}

// One prompt of ten tokens under a budget of eight: two chunks, then decoding, each
// step as long as the formula says.
func TestStepTimes(t *testing.T) {
	e := newSmall(small(10))
	s := seq(1, 10, 3, 1, 2, 3)
	e.Add(s)
	for i, want := range []float64{
		1 + 0.1*8 + 0.001*8*(0+4) + 0.5,
		1 + 0.1*2 + 0.001*2*(8+1) + 0.5,
		1 + 0.01*11 + 0.5, // 10 of the prompt and the first token
		1 + 0.01*12 + 0.5,
	} {
		if got := e.Step(); !near(got, want) {
			t.Errorf("step %d takes %v, want %v", i, got, want)
		}
		first, done := e.Finish()
		if (len(first) == 1) != (i == 1) || (len(done) == 1) != (i == 3) {
			t.Errorf("step %d: first %v, done %v", i, first, done)
		}
	}
	if got := e.Step(); got != 0 || e.Computed != 10 {
		t.Errorf("idle step %v, computed %d", got, e.Computed)
	}
}

// A slow engine's steps are longer by its factor, and noise stays within its share.
func TestSlowAndNoise(t *testing.T) {
	p := small(10)
	plain := 1 + 0.1*4 + 0.001*4*2 + 0.5
	e := New(p, Options{BlockSize: 4, Slow: 3, Noise: 0.1, Rand: rand.New(rand.NewPCG(1, 1))})
	spread := map[float64]bool{}
	for i := range 50 {
		e.Add(seq(i, 4, 1, uint32(i)))
		got := e.Step()
		spread[got] = true
		if got < 3*plain*0.9 || got > 3*plain*1.1 {
			t.Fatalf("step takes %v, want %v by 10 %%", got, 3*plain)
		}
		e.Finish()
	}
	if len(spread) < 40 {
		t.Errorf("%d different lengths in 50 steps", len(spread))
	}
}

// steps runs the engine until it is idle, and returns all that it announced.
func steps(t *testing.T, e *Engine) (changes []Change, first []int) {
	t.Helper()
	for range 1000 {
		d := e.Step()
		changes = append(changes, e.Changes()...)
		if d == 0 {
			return changes, first
		}
		f, _ := e.Finish()
		for _, s := range f {
			first = append(first, s.ID)
		}
		changes = append(changes, e.Changes()...)
		check(t, e)
	}
	t.Fatal("the engine does not come to rest")
	return nil, nil
}

// check holds the pool's books against the sequences.
func check(t *testing.T, e *Engine) {
	t.Helper()
	users, private := map[uint32]int{}, 0
	for _, s := range e.running {
		private += s.private
		for _, id := range s.shared {
			users[id]++
		}
	}
	idle := 0
	for id, b := range e.pool.blocks {
		if b.users != users[id] {
			t.Fatalf("block %d has %d users, want %d", id, b.users, users[id])
		}
		if b.users == 0 {
			idle++
		}
	}
	if private != e.pool.private || idle != e.pool.idle.n || e.pool.free() < 0 {
		t.Fatalf("private %d, want %d; idle %d, want %d; free %d", e.pool.private, private, e.pool.idle.n, idle, e.pool.free())
	}
}

// Full blocks are announced once, hung on what is before them; a second prompt finds
// them, and never all of itself.
func TestReuse(t *testing.T) {
	e := newSmall(small(20))
	e.Add(seq(1, 10, 1, 1, 2, 3))
	changes, _ := steps(t, e)
	if len(changes) != 1 || !changes[0].Stored || !changes[0].Root || !slices.Equal(changes[0].Blocks, []uint32{1, 2}) {
		t.Fatalf("announced %+v, want blocks 1 and 2 at the root", changes)
	}
	twin := seq(2, 8, 1, 1, 2)
	longer := seq(3, 12, 1, 1, 2, 4)
	e.Add(twin)
	e.Add(longer)
	changes, _ = steps(t, e)
	if twin.Cached != 7 || longer.Cached != 8 {
		t.Errorf("cached %d of 8 and %d of 12, want 7 and 8", twin.Cached, longer.Cached)
	}
	if len(changes) != 1 || changes[0].Root || changes[0].Parent != 2 || !slices.Equal(changes[0].Blocks, []uint32{4}) {
		t.Errorf("announced %+v, want block 4 behind 2", changes)
	}
}

// A pool that is full gives the ends of the oldest prompts away first.
func TestEviction(t *testing.T) {
	e := newSmall(small(8))
	e.Add(seq(1, 12, 1, 1, 2, 3))
	steps(t, e)
	e.Add(seq(2, 12, 1, 4, 5, 6))
	steps(t, e)
	e.Add(seq(3, 16, 1, 7, 8, 9, 10))
	changes, _ := steps(t, e)
	var removed []uint32
	for _, c := range changes {
		if !c.Stored {
			removed = append(removed, c.Blocks...)
		}
	}
	if !slices.Equal(removed, []uint32{3, 2}) {
		t.Errorf("removed %v, want 3 and 2: the tail of the oldest", removed)
	}
}

// Decoding sequences that find no block push the youngest back to the queue, and it
// is computed again.
func TestPreemption(t *testing.T) {
	p := small(8)
	p.StepTokens = 64
	e := newSmall(p)
	e.Add(seq(1, 4, 13, 1))
	e.Add(seq(2, 4, 13, 2))
	e.Add(seq(3, 4, 13, 3))
	_, first := steps(t, e)
	if e.Preemptions == 0 {
		t.Error("nothing was preempted")
	}
	slices.Sort(first)
	if !slices.Equal(first, []int{1, 2, 3}) {
		t.Errorf("first tokens of %v, want one of each", first)
	}
}

// The head of the queue waits until there is room for it and two blocks, and nobody
// overtakes it.
func TestAdmissionWaits(t *testing.T) {
	e := newSmall(small(6))
	e.Add(seq(1, 12, 2, 1, 2, 3))
	e.Add(seq(2, 8, 1, 4, 5))
	e.Add(seq(3, 1, 1, 6))
	e.Step()
	if g := e.Gauges(); g.Running != 1 || g.Waiting != 2 || !near(g.Usage, 0.5) {
		t.Errorf("gauges %+v, want one running on half of the pool", g)
	}
	e.Finish()
	_, first := steps(t, e)
	if !slices.Equal(first, []int{1, 2, 3}) {
		t.Errorf("order %v", first)
	}
}

// Blocks that left the pool come back from the host for the time of the link.
func TestHostTier(t *testing.T) {
	p := small(8)
	p.HostTokens = 4 * 100
	e := newSmall(p)
	e.Add(seq(1, 12, 1, 1, 2, 3))
	steps(t, e)
	e.Add(seq(2, 16, 1, 4, 5, 6, 7))
	steps(t, e)
	e.Add(seq(3, 20, 1, 8, 9, 10, 11, 12))
	changes, _ := steps(t, e)
	if !slices.ContainsFunc(changes, func(c Change) bool { return c.Stored && c.Tier == Host && c.Moved }) {
		t.Fatalf("nothing was stored on the host: %+v", changes)
	}
	back := seq(4, 13, 1, 1, 2, 3, 13)
	e.Add(back)
	got := e.Step()
	want := 1 + 0.1*1 + 0.001*1*(12+0.5) + 0.5 + 0.25 + float64(12*10)/100
	if !near(got, want) || back.Cached != 12 {
		t.Errorf("step %v with %d cached, want %v with 12", got, back.Cached, want)
	}
	check(t, e)
}

// An adapter is loaded once, and one without a slot lets others past.
func TestAdapters(t *testing.T) {
	p := small(40)
	p.AdapterSlots = 1
	e := newSmall(p)
	for i, name := range []string{"a", "b", "a"} {
		s := seq(i, 2, 2, uint32(i))
		s.Adapter = name
		e.Add(s)
	}
	if got, want := e.Step(), 1+2*(0.1*2+0.001*2*1)+2*0.5+7; !near(got, want) {
		t.Errorf("step %v, want %v: two sequences and one load", got, want)
	}
	if g := e.Gauges(); !slices.Equal(g.ActiveAdapters, []string{"a"}) || !slices.Equal(g.QueuedAdapters, []string{"b"}) {
		t.Errorf("adapters %+v", g)
	}
	e.Finish()
	_, first := steps(t, e)
	if !slices.Equal(first, []int{1}) {
		t.Errorf("afterwards %v, want the one that waited", first)
	}
}

// Whatever comes, the books are right, every sequence has one first token, and the
// announcements alone tell what the pool holds.
func TestRandomTraffic(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 40 {
		p := small(20 + rnd.IntN(60))
		p.StepTokens, p.MaxSequences = 8+rnd.IntN(30), 1+rnd.IntN(6)
		p.HostTokens, p.AdapterSlots = 4*rnd.IntN(40), rnd.IntN(3)
		e := newSmall(p)
		held, next := map[uint32]bool{}, uint32(1000)
		const n = 60
		for i := range n {
			family, shared := uint32(rnd.IntN(4)), rnd.IntN(4)
			s := seq(i, 0, 1+rnd.IntN(9))
			for b := range shared {
				s.Blocks = append(s.Blocks, family*10+uint32(b))
			}
			s.Prompt = 4*shared + 1 + rnd.IntN(12)
			for len(s.Blocks) < (s.Prompt+3)/4 {
				s.Blocks = append(s.Blocks, next)
				next++
			}
			if p.AdapterSlots > 0 && family > 0 { // of a family, as blocks are of one adapter
				s.Adapter = string('a' + rune(family))
			}
			e.Add(s)
		}
		changes, first := steps(t, e)
		for _, c := range changes {
			for _, b := range c.Blocks {
				if c.Tier == GPU {
					held[b] = c.Stored
				}
			}
		}
		for b, on := range held {
			if on != (e.pool.blocks[b] != nil) {
				t.Fatalf("block %d: announced %v, held %v", b, on, !on)
			}
		}
		slices.Sort(first)
		if len(first) != n || len(slices.Compact(first)) != n {
			t.Fatalf("%d first tokens for %d sequences", len(first), n)
		}
	}
}

// The three profiles are whole, and the first is what one published figure says: a
// chunk of 8,192 tokens takes 0.40 s.
func TestProfiles(t *testing.T) {
	for _, name := range Profiles() {
		p, err := ProfileByName(name)
		if err != nil || p.PoolTokens == 0 || p.HostBandwidth == 0 {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	p, _ := ProfileByName("32b-tp2-h100")
	if got := p.Base + p.Prefill(8192, 0) + p.PerSequence; math.Abs(got-0.40) > 0.01 {
		t.Errorf("8,192 tokens take %v s, want 0.40", got)
	}
	if _, err := ProfileByName("x"); err == nil {
		t.Error("an unknown profile was accepted")
	}
}
