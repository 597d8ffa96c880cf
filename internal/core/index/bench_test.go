package index

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// fleet is a loaded index of 64 members: conversations of 512 and 2,048 blocks
// under one root of 16 blocks and a prefix of 112 per application, each held by
// one to four members, some of it on the host tier too.
type fleet struct {
	ix     *Index
	prompt map[int][]*block.Prompt // by blocks
	events []fleetEvent
	blocks int
}

type fleetEvent struct {
	m pod.Member
	e event.Event
}

const fleetMembers = 64

func newFleet(load bool) *fleet {
	r := rand.New(rand.NewPCG(42, 7))
	draw := func(blocks int) []uint32 {
		t := make([]uint32, 16*blocks)
		for i := range t {
			t[i] = r.Uint32N(128000)
		}
		return t
	}
	f := &fleet{prompt: map[int][]*block.Prompt{}}
	root := draw(16)
	for range 8 {
		app := append(append([]uint32{}, root...), draw(112)...)
		for i := range 48 {
			blocks := 512
			if i >= 40 {
				blocks = 2048
			}
			t := append(append([]uint32{}, app...), draw(blocks-128)...)
			f.prompt[blocks] = append(f.prompt[blocks], &block.Prompt{Model: "m", Tokens: t, Cut: -1})
			hashes := make([]uint64, blocks)
			h := block.Extra(99)
			for j := range hashes { // equal prefixes have equal hashes
				for _, x := range t[16*j : 16*j+16] {
					h = block.ExtraInt(h, int64(x))
				}
				hashes[j] = uint64(h)
			}
			holders := []int{1, 1, 1, 1, 1, 1, 1, 2, 2, 4}[r.IntN(10)]
			for k, m := range r.Perm(fleetMembers)[:holders] {
				n := blocks
				if k > 0 {
					n = blocks/4 + r.IntN(blocks*3/4)
				}
				f.chain(pod.Member(m), event.TierGPU, hashes[:n], t)
				if r.IntN(4) == 0 {
					f.chain(pod.Member(m), event.TierHost, hashes[:n/2], t)
				}
			}
		}
	}
	if load {
		f.load()
	}
	return f
}

// chain adds the stores of a prefix, 32 blocks each.
func (f *fleet) chain(m pod.Member, t event.Tier, hashes []uint64, tokens []uint32) {
	for a := 0; a < len(hashes); a += 32 {
		b := min(a+32, len(hashes))
		e := event.Event{Kind: event.Stored, Tier: t, Hashes: hashes[a:b], Tokens: tokens[16*a : 16*b], BlockSize: 16, LoRAID: -1}
		if a > 0 {
			e.HasParent, e.Parent = true, hashes[a-1]
		}
		f.events = append(f.events, fleetEvent{m, e})
		f.blocks += b - a
	}
}

func (f *fleet) load() {
	f.ix = New(Options{Seed: 1})
	for m := range pod.Member(fleetMembers) {
		f.ix.Register(m, Owner{Model: "m", Engine: pod.EngineVLLM})
	}
	for i := range f.events {
		f.ix.Apply(f.events[i].m, &f.events[i].e, 0)
	}
}

// floor is the least any index of verified blocks can cost: hash every block of
// the prompt, compare it with a key that lies next to the one before. It is the
// lookup's own inner loop; a call per block would be slower than the index.
func floor(h *block.Hasher, tokens []uint32, keys []block.Key) bool {
	n, _ := h.Match(keys, tokens, 16)
	return n == len(keys)
}

// BenchmarkLookup reports, in one run, a hot lookup, a lookup of a random
// conversation, and their ratio to the hash floor.
func BenchmarkLookup(b *testing.B) {
	f := newFleet(true)
	for _, blocks := range []int{512, 2048} {
		prompts := f.prompt[blocks]
		keys := make([][]block.Key, len(prompts))
		for i, p := range prompts {
			for t := p.Tokens; len(t) > 0; t = t[16:] {
				keys[i] = append(keys[i], f.ix.hasher.Key(t[:16]))
			}
		}
		for _, hot := range []bool{true, false} {
			b.Run(fmt.Sprintf("%d/hot=%v", blocks, hot), func(b *testing.B) {
				var out Result
				spent, least := make([]time.Duration, 0, b.N), make([]time.Duration, 0, b.N)
				b.ReportAllocs()
				b.ResetTimer()
				for n := range b.N {
					i := 0
					if !hot {
						i = n * 37 % len(prompts)
					}
					t0 := time.Now()
					f.ix.Lookup(prompts[i], &out)
					t1 := time.Now()
					if !floor(f.ix.hasher, prompts[i].Tokens, keys[i]) {
						b.Fatal("the floor does not match")
					}
					spent, least = append(spent, t1.Sub(t0)), append(least, time.Since(t1))
					if len(out.Matches) == 0 {
						b.Fatal("nothing found")
					}
				}
				slices.Sort(spent) // medians: other load on the machine is not the index's
				slices.Sort(least)
				x, y := spent[b.N/2], least[b.N/2]
				b.ReportMetric(float64(x.Nanoseconds()), "ns/lookup-p50")
				b.ReportMetric(float64(spent[b.N*99/100].Nanoseconds()), "ns/lookup-p99")
				b.ReportMetric(float64(y.Nanoseconds()), "ns/floor-p50")
				b.ReportMetric(float64(x)/float64(y), "x-floor")
			})
		}
	}
}

// BenchmarkStore reports stored blocks per second, hashing included: a cold
// load, and eviction with re-store as a full engine does it, one hash per
// removal.
func BenchmarkStore(b *testing.B) {
	f := newFleet(true)
	b.Run("load", func(b *testing.B) {
		f.ix = nil
		before := heapInUse()
		b.ResetTimer()
		for range b.N {
			f.load()
		}
		b.ReportMetric(float64(f.blocks)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mblocks/s")
		b.StopTimer()
		b.ReportMetric((heapInUse()-before)/float64(f.ix.Stats().Blocks), "B/block")
	})
	b.Run("evict-restore", func(b *testing.B) {
		r := rand.New(rand.NewPCG(5, 6))
		n := 0
		for range b.N {
			x := &f.events[r.IntN(len(f.events))]
			gone := event.Event{Kind: event.Removed, Tier: x.e.Tier, Hashes: make([]uint64, 1)}
			for i := len(x.e.Hashes) - 1; i >= 0; i-- {
				gone.Hashes[0] = x.e.Hashes[i]
				f.ix.Apply(x.m, &gone, 0)
			}
			f.ix.Apply(x.m, &x.e, 0)
			n += 2 * len(x.e.Hashes)
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mblocks/s")
	})
	b.Run("decode", func(b *testing.B) { // one block per event
		ix := New(Options{Seed: 1})
		ix.Register(0, Owner{Model: "m"})
		t := tokens(1, 16)
		e := event.Event{Kind: event.Stored, Hashes: make([]uint64, 1), Tokens: t, BlockSize: 16, LoRAID: -1}
		for n := range b.N {
			e.HasParent, e.Parent, e.Hashes[0] = n%2000 > 0, uint64(n), uint64(n+1)
			t[0], t[1] = uint32(n/2000), uint32(n)
			ix.Apply(0, &e, 0)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
	})
}

// BenchmarkSnapshot saves and loads a loaded index.
func BenchmarkSnapshot(b *testing.B) {
	f := newFleet(true)
	blocks := f.ix.Stats().Blocks
	var file bytes.Buffer
	b.Run("save", func(b *testing.B) {
		for range b.N {
			file.Reset()
			if err := f.ix.Save(&file, nil); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(file.Len())/float64(blocks), "B/block")
		b.ReportMetric(float64(blocks)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mblocks/s")
	})
	b.Run("load", func(b *testing.B) {
		for range b.N {
			if _, err := Load(bytes.NewReader(file.Bytes()), Options{}, 0, nil); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(blocks)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mblocks/s")
	})
}
