package index

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

const (
	raceSeqs   = 16
	raceBlocks = 48
)

// ledger records when one member held which block. That it will is written down
// before the event, and that it does not any more after it, so every block a
// lookup reports must have been held at some time between the lookup's begin and
// end. A lookup reads each run of its path at an instant of its own: beside
// writers it may join two runs that were never whole at the same time.
type ledger struct {
	mu     sync.Mutex
	blocks map[uint64][]ledgerLine
}

type ledgerLine struct {
	tick int64
	held bool
}

func (l *ledger) heldDuring(block uint64, from, to int64) bool {
	lines := l.blocks[block]
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i].tick <= to && lines[i].held {
			return true
		}
		if lines[i].tick <= from {
			return false
		}
	}
	return false
}

// most is the largest depth a lookup in the interval may report.
func (l *ledger) most(path []uint64, from, to int64) (depth int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for depth < len(path) && l.heldDuring(path[depth], from, to) {
		depth++
	}
	return depth
}

type race struct {
	ix    *Index
	seqs  [raceSeqs]*block.Prompt
	nodes [raceSeqs][raceBlocks]uint64 // equal for equal prefixes; serve as hashes
	clock atomic.Int64
	books map[pod.Member]*ledger
}

// writer plays the engine of one member and keeps its book.
type writer struct {
	*race
	m    pod.Member
	book *ledger
	held map[uint64]bool
	r    *rand.Rand
}

// note writes a change down.
func (w *writer) note(held bool, blocks []uint64) {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	tick := w.clock.Add(1)
	for _, b := range blocks {
		if w.held[b] != held {
			w.book.blocks[b] = append(w.book.blocks[b], ledgerLine{tick, held})
		}
		if held {
			w.held[b] = true
		} else {
			delete(w.held, b)
		}
	}
}

func (w *writer) step() {
	s := w.r.IntN(raceSeqs)
	a := w.r.IntN(raceBlocks)
	b := a + 1 + w.r.IntN(raceBlocks-a)
	e := &event.Event{Tier: event.TierGPU, Hashes: w.nodes[s][a:b], LoRAID: -1}
	if w.m%64 == 0 && w.r.IntN(3) == 0 { // of a hybrid model: windows only shorten what it holds
		e.Kind, e.Group, e.SpecKind, e.Window, e.BlockSize = event.Stored, 1, "sliding_window", 17+16*w.r.IntN(2), 16
		if w.r.IntN(3) == 0 {
			e.Kind = event.Removed
		}
		w.ix.Apply(w.m, e, 0)
		return
	}
	switch x := w.r.IntN(40); {
	case x < 22:
		e.Kind, e.BlockSize = event.Stored, 16
		if a > 0 && !w.held[w.nodes[s][a-1]] {
			a = 0
			e.Hashes = w.nodes[s][:b]
		}
		if a > 0 {
			e.HasParent, e.Parent = true, w.nodes[s][a-1]
		}
		e.Tokens = w.seqs[s].Tokens[16*a : 16*b]
		w.note(true, e.Hashes)
		w.ix.Apply(w.m, e, 0)
	case x < 38:
		// A hash may have several copies by now, those of parked stores without
		// a bound of their own; take all of them.
		e.Kind = event.Removed
		for w.ix.Apply(w.m, e, 0).Unknown < len(e.Hashes) {
		}
		w.note(false, e.Hashes)
	case x < 39:
		w.ix.Apply(w.m, &event.Event{Kind: event.Cleared}, 0)
		w.note(false, slices.Collect(maps.Keys(w.held)))
	default:
		w.ix.Purge(w.m)
		w.note(false, slices.Collect(maps.Keys(w.held)))
	}
}

func newRace(o Options) *race {
	w := &race{ix: New(o), books: map[pod.Member]*ledger{}}
	r := rand.New(rand.NewPCG(1, 82))
	next := uint64(1)
	for s := range w.seqs {
		p := &block.Prompt{Model: "m", Cut: -1, Tokens: tokens(uint64(s), 16*raceBlocks)}
		from := 0
		if s > 0 {
			q := r.IntN(s)
			from = r.IntN(raceBlocks)
			copy(p.Tokens, w.seqs[q].Tokens[:16*from])
			copy(w.nodes[s][:], w.nodes[q][:from])
		}
		for ; from < raceBlocks; from++ {
			w.nodes[s][from] = next
			next++
		}
		w.seqs[s] = p
	}
	return w
}

// read looks up until stopped and holds every answer against the books.
func (w *race) read(t *testing.T, stop *atomic.Bool, seed uint64) (lookups int) {
	var out Result
	r := rand.New(rand.NewPCG(seed, 83))
	for ; !stop.Load(); lookups++ {
		s := r.IntN(raceSeqs)
		from := w.clock.Load()
		w.ix.Lookup(w.seqs[s], &out)
		to := w.clock.Load()
		for _, x := range out.Matches {
			book := w.books[x.Member]
			if book == nil { // the expected one
				if x.Announced > 0 {
					t.Errorf("member %d: %+v, it announced nothing", x.Member, x)
				}
				continue
			}
			if most := book.most(w.nodes[s][:], from, to); int(max(x.Depth, x.Announced)) > most {
				t.Errorf("member %d sequence %d: depth %d, block %d was not held in [%d, %d]", x.Member, s, x.Depth, most, from, to)
				return lookups
			}
			sum := int32(0)
			for _, n := range x.Fastest {
				sum += n
			}
			if x.Depth == 0 || sum != x.Announced {
				t.Errorf("member %d: %+v", x.Member, x)
			}
		}
	}
	return lookups
}

// save writes a snapshot beside the writers and holds what it loads against the
// books: as of any time while it was written, never more.
func (w *race) save(t *testing.T) {
	var file bytes.Buffer
	from := w.clock.Load()
	err := w.ix.Save(&file, nil)
	to := w.clock.Load()
	if err != nil {
		t.Error(err)
		return
	}
	loaded, err := Load(&file, Options{}, 0, nil)
	if err != nil {
		t.Error(err)
		return
	}
	var out Result
	for s, p := range w.seqs {
		loaded.Lookup(p, &out)
		for _, x := range out.Matches {
			if most := w.books[x.Member].most(w.nodes[s][:], from, to); int(x.Depth) > most {
				t.Errorf("a snapshot shows member %d with depth %d of sequence %d, block %d was not held in [%d, %d]", x.Member, x.Depth, s, most, from, to)
			}
		}
	}
}

func (w *race) run(t *testing.T, steps int) {
	const writers, readers = 3, 2
	var writing, reading sync.WaitGroup
	var stop atomic.Bool
	for i := range writers {
		var mine []*writer
		for j := range 3 {
			m := pod.Member(i*64 + j)
			w.ix.Register(m, Owner{Model: "m", Engine: pod.EngineVLLM})
			w.books[m] = &ledger{blocks: map[uint64][]ledgerLine{}}
			mine = append(mine, &writer{w, m, w.books[m], map[uint64]bool{}, rand.New(rand.NewPCG(uint64(m), 84))})
		}
		writing.Go(func() {
			for k := range steps {
				mine[k%len(mine)].step()
			}
		})
	}
	const guest = 700 // never announces
	w.ix.Register(guest, Owner{Model: "m", BlockSize: 16})
	var total atomic.Int64
	for i := range readers {
		reading.Go(func() { total.Add(int64(w.read(t, &stop, uint64(i)))) })
	}
	reading.Go(func() {
		var live []Expectation
		for k := 0; !stop.Load(); k++ {
			live = append(live, w.ix.Expect(guest, w.seqs[k%4]))
			if len(live) > 20 {
				live[0].Release()
				live = live[1:]
			}
			if k%200 == 0 {
				w.ix.Sweep(int64(time.Hour))
				w.ix.Stats()
			}
		}
		for _, x := range live {
			x.Release()
		}
	})
	reading.Go(func() {
		for n := 0; !stop.Load(); n++ {
			w.save(t)
		}
	})
	writing.Wait()
	stop.Store(true)
	reading.Wait()
	for m := range w.books {
		w.ix.Purge(m)
	}
	w.ix.Purge(guest)
	if s := w.ix.Stats(); s.Blocks != 0 || s.Runs != 0 {
		t.Errorf("left over: %+v", s)
	}
	t.Logf("%d lookups, trimmed %d, evicted %d", total.Load(), w.ix.Stats().Trimmed, w.ix.Stats().Evicted)
}

func TestRace(t *testing.T) {
	t.Run("IX-51 IX-82", func(t *testing.T) { newRace(Options{Seed: 1, TTL: -1}).run(t, 6000) })
	t.Run("IX-82 under a cap", func(t *testing.T) { newRace(Options{Seed: 1, TTL: -1, MaxBlocks: 200}).run(t, 3000) })
}

// A store below a run takes no lock until it knows the run's shard, while a
// trimmed parent gets a twin in its place (make race sees it).
func TestStoreBesideTrim(t *testing.T) {
	r := newRig(t, Options{})
	const head, tail, kid = 4, 64, 8
	toks := tokens(1, (head+tail)*16)
	below := tokens(2, kid*16)
	r.store(r2, event.TierGPU, top, hashes(1, head+tail), toks) // one run, from which the other hangs
	r.store(r1, event.TierGPU, top, hashes(1, head), toks[:head*16])
	r.remove(r2, event.TierGPU, hashes(1, head+tail)...)
	r.store(r1, event.TierGPU, head, hashes(101, 100+kid/2), below[:kid/2*16])
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				r.store(r1, event.TierGPU, 100+kid/2, hashes(101+kid/2, 100+kid), below[kid/2*16:])
				r.remove(r1, event.TierGPU, hashes(101+kid/2, 100+kid)...)
			}
		}
	})
	for range 200 {
		r.store(r2, event.TierGPU, top, hashes(1, head+tail), toks)
		r.remove(r2, event.TierGPU, hashes(1, head+tail)...)
		r.ix.Sweep(r.now)
	}
	close(stop)
	wg.Wait()
	if r.ix.Stats().Trimmed == 0 {
		t.Error("nothing was trimmed")
	}
	got := r.lookup(block.Prompt{Tokens: append(toks[:head*16:head*16], below...), Cut: -1})
	if got[r1].Depth != head+kid/2 || got[r2].Depth != 0 {
		t.Errorf("%+v", got)
	}
}
