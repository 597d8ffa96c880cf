package index

import (
	"slices"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

const (
	gpu  = event.TierGPU
	host = event.TierHost
	disk = event.TierDisk
)

func TestDepth(t *testing.T) {
	p := tokens(1, 4*16+5)
	four := p[:64]
	filled := func(t *testing.T) *rig {
		r := newRig(t, Options{})
		r.store(r1, gpu, top, hashes(1, 4), four)
		return r
	}
	t.Run("IX-01", func(t *testing.T) {
		r := filled(t)
		if x := r.match(r1, p); x.Depth != 4 || x.Size != 16 || x.Announced != 4 {
			t.Errorf("%+v", x)
		}
	})
	t.Run("IX-02", func(t *testing.T) { filled(t).depth(r1, p[:5], 0) })
	t.Run("IX-03", func(t *testing.T) {
		q := slices.Clone(p)
		q[2*16+3]++
		filled(t).depth(r1, q, 2)
	})
	t.Run("IX-04", func(t *testing.T) {
		r := filled(t)
		r.remove(r1, gpu, 2)
		r.depth(r1, p, 1)
		r.store(r1, gpu, 1, hashes(2, 2), p[16:32])
		r.depth(r1, p, 4)
	})
	t.Run("IX-05", func(t *testing.T) {
		r := filled(t)
		if n := r.remove(r1, gpu, 9, 3, 4); n != 1 {
			t.Errorf("%d unknown", n)
		}
		r.depth(r1, p, 2)
	})
	t.Run("IX-06 KV-30", func(t *testing.T) {
		r := filled(t)
		r.store(r2, gpu, top, hashes(1, 4), four)
		r.remove(r1, gpu, 1)
		r.depth(r1, p, 0)
		r.depth(r2, p, 4)
	})
	t.Run("IX-07", func(t *testing.T) {
		r := filled(t)
		m := r.ix.member(r1)
		at, _ := m.rev.lookup(3)
		before := *m.rev.log.segment(at)
		fork := append(slices.Clone(p[:32]), tokens(2, 32)...)
		r.store(r2, gpu, top, []uint64{1, 2, 13, 14}, fork)
		r.depth(r1, p, 4)
		r.depth(r2, p, 2)
		r.depth(r1, fork, 2)
		r.depth(r2, fork, 4)
		if at2, _ := m.rev.lookup(3); at2 != at || *m.rev.log.segment(at) != before {
			t.Error("the place of a block moved")
		}
		if n := r.ix.Stats().Runs; n != 2 {
			t.Errorf("%d runs, want 2", n)
		}
	})
	t.Run("IX-08", func(t *testing.T) {
		r := filled(t)
		q := tokens(3, 7*16)
		copy(q[6*16:], p[:16])
		r.store(r1, gpu, top, hashes(21, 27), q)
		r.depth(r1, p, 4)
		r.depth(r1, q, 7)
		r.depth(r1, q[6*16:], 1) // the block as a prompt of its own
	})
	t.Run("IX-09", func(t *testing.T) {
		r := filled(t)
		q := tokens(4, 64)
		r.store(r2, gpu, top, hashes(1, 4), q)
		r.remove(r2, gpu, 2)
		r.depth(r1, p, 4)
		r.depth(r2, q, 1)
	})
	t.Run("IX-10", func(t *testing.T) {
		r := filled(t)
		fifth, other := tokens(5, 16), tokens(6, 16)
		r.store(r1, gpu, 4, hashes(5, 5), fifth)
		r.depth(r1, slices.Concat(four, fifth), 5)
		r.store(r1, gpu, 2, hashes(5, 5), other)
		r.depth(r1, slices.Concat(four, fifth), 4)
		r.depth(r1, slices.Concat(four[:32], other), 3)
		r.remove(r1, gpu, 5)
		r.depth(r1, slices.Concat(four[:32], other), 2)
		if n := r.stats(r1).Blocks[gpu]; n != 4 {
			t.Errorf("%d blocks, want 4", n)
		}
	})
	t.Run("IX-11 KV-47", func(t *testing.T) {
		r := newRig(t, Options{})
		r.store(r1, gpu, 0, hashes(7, 7), p[:16]) // the root, 0 is not known
		r.depth(r1, p, 1)
		r.store(r1, gpu, 7, []uint64{0}, p[16:32])
		r.depth(r1, p, 2)
		r.store(r1, gpu, 0, hashes(8, 8), p[32:48]) // now 0 is a block
		r.depth(r1, p, 3)
		r.store(r1, gpu, top, hashes(9, 9), p[48:64]) // nil is always the root
		r.depth(r1, p[48:64], 1)
		r.remove(r1, gpu, 0)
		r.depth(r1, p, 1)
	})
}

func TestTiers(t *testing.T) {
	p := tokens(1, 6*16)
	t.Run("IX-20 IX-21 IX-22 KV-28", func(t *testing.T) {
		r := newRig(t, Options{})
		r.store(r1, gpu, top, hashes(1, 4), p[:64])
		r.store(r1, host, top, hashes(1, 2), p[:32])
		r.tiers(r1, p, 4, 0)
		r.remove(r1, gpu, 1, 2)
		r.tiers(r1, p, 2, 2)
		r.remove(r1, host, 1)
		r.depth(r1, p, 0)
	})
	t.Run("IX-23", func(t *testing.T) {
		r := newRig(t, Options{})
		r.store(r1, gpu, top, hashes(1, 3), p[:48])
		r.store(r1, host, 3, hashes(4, 5), p[48:80])
		r.store(r1, disk, 5, hashes(6, 6), p[80:])
		r.tiers(r1, p, 3, 2, 1)
	})
	t.Run("IX-24 KV-29", func(t *testing.T) {
		r := newRig(t, Options{})
		r.store(r1, gpu, top, hashes(1, 4), p[:64])
		e := &event.Event{Kind: event.Stored, Tier: host, Hashes: []uint64{1, 2, 3, 4, 99}}
		if o := r.apply(r1, e, Applied); o.Unknown != 1 {
			t.Errorf("%d unknown", o.Unknown)
		}
		r.remove(r1, gpu, 1, 2, 3, 4)
		r.tiers(r1, p, 0, 4)
	})
	t.Run("IX-25 KV-36", func(t *testing.T) {
		for medium, want := range map[string]event.Tier{"GPU": gpu, "gpu": gpu, "": gpu, "CPU": host,
			"CPU_PINNED": host, "CPU_TIER1": host, "DISK": disk, "SHARED_STORAGE": event.TierRemote} {
			if tier, _, known := event.Medium(medium); tier != want || !known {
				t.Errorf("%q is %v", medium, tier)
			}
		}
		r := newRig(t, Options{}) // what the whole fleet shares, no member holds
		e := r.event(event.TierRemote, top, hashes(1, 2), p[:32])
		e.Shared = true
		r.apply(r1, e, SharedMedium)
		r.depth(r1, p, 0)
	})
	t.Run("IX-26 KV-31", func(t *testing.T) {
		r := newRig(t, Options{})
		for _, m := range []pod.Member{r1, r2} {
			r.store(m, gpu, top, hashes(1, 4), p[:64])
			r.store(m, host, top, hashes(1, 2), p[:32])
		}
		r.apply(r1, &event.Event{Kind: event.Cleared}, Applied)
		r.tiers(r1, p, 0, 2)
		r.tiers(r2, p, 4, 0)
		r.apply(r1, &event.Event{Kind: event.Cleared, Tier: host, Medium: "CPU"}, Applied)
		r.depth(r1, p, 0)
	})
	t.Run("IX-27", func(t *testing.T) {
		r := newRig(t, Options{})
		r.ix.Register(r1, Owner{Model: "m", Engine: pod.EngineSGLang})
		r.store(r1, gpu, top, hashes(1, 4), p[:64])
		r.store(r1, host, top, hashes(1, 2), p[:32])
		r.apply(r1, &event.Event{Kind: event.Cleared}, Applied)
		r.depth(r1, p, 0)
		if s := r.ix.Stats(); s.Blocks != 0 || s.Runs != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("IX-28 KV-27", func(t *testing.T) {
		r := newRig(t, Options{})
		for range 2 {
			r.store(r1, gpu, top, hashes(1, 1), p[:16])
		}
		if s := r.stats(r1); s.Blocks[gpu] != 1 || s.Copies[gpu] != 2 || r.ix.Stats().Blocks != 1 {
			t.Errorf("%+v", s)
		}
		r.remove(r1, gpu, 1)
		r.depth(r1, p, 1)
		r.remove(r1, gpu, 1)
		r.depth(r1, p, 0)
		for range 10 { // an engine that only repeats itself cannot inflate for ever
			r.store(r1, gpu, top, hashes(1, 1), p[:16])
		}
		r.remove(r1, gpu, 1, 1, 1)
		r.depth(r1, p, 1)
		r.remove(r1, gpu, 1) // the fourth
		r.depth(r1, p, 0)
	})
	t.Run("KV-52", func(t *testing.T) { // more copies than the engine has blocks
		r := newRig(t, Options{})
		r.ix.Register(r1, Owner{Model: "m", Engine: pod.EngineVLLM, Blocks: 5})
		r.store(r1, gpu, top, hashes(1, 4), p[:64])
		r.remove(r1, gpu, 4)
		r.store(r1, gpu, top, hashes(1, 1), p[:16])
		if s := r.stats(r1); s.Breaches != 0 || s.Copies[gpu] != 4 {
			t.Errorf("a full engine: %+v", s)
		}
		r.store(r1, gpu, top, hashes(1, 1), p[:16])
		if s := r.stats(r1); s.Breaches != 1 || s.Copies[gpu] != 3 || s.Inflated {
			t.Errorf("five copies in four blocks: %+v", s)
		}
		r.remove(r1, gpu, 1)
		r.depth(r1, p, 0)
		r.store(r1, gpu, top, hashes(1, 1), p[:16])
		o := r.apply(r1, r.event(gpu, 3, hashes(4, 5), tokens(2, 32)), Applied)
		if s := r.stats(r1); !s.Inflated || !o.Inflated {
			t.Errorf("five blocks in four: %+v", s)
		}
		r.ix.Purge(r1)
		if s := r.stats(r1); s.Inflated || s.Copies[gpu] != 0 {
			t.Errorf("after a reset: %+v", s)
		}
	})
}

func TestNamespaces(t *testing.T) {
	p := tokens(1, 64)
	t.Run("IX-30 KV-06", func(t *testing.T) {
		r := newRig(t, Options{})
		e := r.event(gpu, top, hashes(1, 4), p)
		e.LoRA, e.LoRAID = "x", 1
		r.apply(r1, e, Applied)
		r.store(r2, gpu, top, hashes(1, 2), p[:32])
		base := r.lookup(block.Prompt{Tokens: p, Cut: -1})
		x := r.lookup(block.Prompt{Tokens: p, Cut: -1, LoRA: "x"})
		if len(base) != 1 || base[r2].Depth != 2 || len(x) != 1 || x[r1].Depth != 4 {
			t.Errorf("base %v, adapter %v", base, x)
		}
		other := r.lookup(block.Prompt{Tokens: p, Cut: -1, Model: "n"})
		if len(other) != 0 {
			t.Errorf("another model: %v", other)
		}
	})
	t.Run("IX-31 KV-42", func(t *testing.T) {
		r := newRig(t, Options{})
		for i, salt := range []string{"", "a", "b"} {
			e := r.event(gpu, top, hashes(uint64(10*i+1), uint64(10*i+i+1)), p[:16*(i+1)])
			e.HasSalt, e.Salt = salt != "", salt
			r.apply(r1, e, Applied)
		}
		for i, salt := range []string{"", "a", "b", "c"} {
			if got := r.lookup(block.Prompt{Tokens: p, Cut: -1, Salt: salt})[r1].Depth; int(got) != (i+1)%4 {
				t.Errorf("salt %q: depth %d", salt, got)
			}
		}
		// vLLM states the salt on the first block only.
		r.store(r1, gpu, 12, hashes(13, 13), p[32:48])
		if got := r.lookup(block.Prompt{Tokens: p, Cut: -1, Salt: "a"})[r1].Depth; got != 3 {
			t.Errorf("child of a salted block: depth %d", got)
		}
		// Nor does a fork off it state one; what hangs below the fork may.
		fork := tokens(2, 32)
		r.store(r1, gpu, 12, hashes(113, 113), fork[:16])
		e := r.event(gpu, 113, hashes(114, 114), fork[16:])
		e.HasSalt, e.Salt = true, "a"
		r.apply(r1, e, Applied)
		if got := r.lookup(block.Prompt{Tokens: slices.Concat(p[:32], fork), Cut: -1, Salt: "a"})[r1].Depth; got != 4 {
			t.Errorf("grandchild of a salted block: depth %d", got)
		}
		e = r.event(gpu, 13, hashes(14, 14), p[48:64])
		e.HasSalt, e.Salt = true, "b"
		r.apply(r1, e, OtherSpace) // KV-17
		e.HasSalt, e.LoRA = false, "x"
		r.apply(r1, e, OtherSpace)
	})
	t.Run("IX-32", func(t *testing.T) {
		r := newRig(t, Options{})
		for i, h := range [][]uint64{hashes(1, 2), hashes(3, 4)} {
			e := r.event(gpu, top, h[:1], p[:16])
			if i == 1 {
				e = r.event(gpu, 1, h, p[16:48])
			}
			e.LoRA, e.LoRAID = "x", int64(i+1)
			r.apply(r1, e, Applied)
		}
		if got := r.lookup(block.Prompt{Tokens: p, Cut: -1, LoRA: "x"})[r1].Depth; got != 3 {
			t.Errorf("depth %d", got)
		}
	})
	t.Run("an adapter without a name is nobody's", func(t *testing.T) {
		r := newRig(t, Options{})
		e := r.event(gpu, top, hashes(1, 4), p)
		e.LoRAID = 7
		r.apply(r1, e, Applied)
		r.depth(r1, p, 0)
	})
	t.Run("IX-33", func(t *testing.T) { // a block with an image ends what a request can match
		r := newRig(t, Options{})
		e := r.event(gpu, top, hashes(1, 4), p)
		e.Extra = []uint64{0, 0, 77, 0}
		r.apply(r1, e, Applied)
		r.depth(r1, p, 2)
		e.Hashes, e.Tokens, e.Extra = hashes(11, 13), p[:48], []uint64{0, 0, 78} // another image in the same place
		r.apply(r1, e, Applied)
		r.remove(r1, gpu, 3)
		r.apply(r1, r.event(gpu, 13, hashes(14, 14), p[48:]), Applied) // below the other
		ids := map[place]bool{}
		for _, h := range []uint64{4, 13, 14} {
			at, ok := r.ix.member(r1).rev.lookup(h)
			if place := r.ix.member(r1).rev.log.place(at); !ok || ids[place] {
				t.Errorf("hash %d shares its place with one behind another image", h)
			} else {
				ids[place] = true
			}
		}
		r.store(r2, gpu, top, hashes(1, 4), p)
		if x := r.lookup(block.Prompt{Tokens: p, Cut: 40})[r2]; x.Depth != 2 {
			t.Errorf("image at token 40: depth %d", x.Depth)
		}
		if x := r.lookup(block.Prompt{Tokens: p, Cut: 0}); len(x) != 0 {
			t.Errorf("image at token 0: %v", x)
		}
	})
	t.Run("an image that the request names", func(t *testing.T) {
		image := func(name string, offset, length int) block.Item {
			return block.Item{ID: block.IdentifyItem(name), Offset: offset, Length: length}
		}
		at := func(list ...any) (x uint64) { // name and offset in the block, in turn
			for i := 0; i < len(list); i += 2 {
				x = uint64(block.ExtraItem(block.Extra(x), block.IdentifyItem(list[i].(string)), int64(list[i+1].(int))))
			}
			return x
		}
		r := newRig(t, Options{})
		e := r.event(gpu, top, hashes(1, 4), p) // cat in tokens 8 to 20, dog in 22 to 40
		e.Extra = []uint64{at("cat", 8), at("cat", -8, "dog", 6), at("dog", -10), 0}
		r.apply(r1, e, Applied)
		for name, c := range map[string]struct {
			items []block.Item
			cut   int
			want  int32
		}{
			"both":                 {[]block.Item{image("cat", 8, 12), image("dog", 22, 18)}, -1, 4},
			"another first":        {[]block.Item{image("cow", 8, 12), image("dog", 22, 18)}, -1, 0},
			"another second":       {[]block.Item{image("cat", 8, 12), image("cow", 22, 18)}, -1, 1},
			"elsewhere":            {[]block.Item{image("cat", 9, 11), image("dog", 22, 18)}, -1, 0},
			"ends a block earlier": {[]block.Item{image("cat", 8, 12), image("dog", 22, 10)}, -1, 2},
			"one more":             {[]block.Item{image("cat", 8, 12), image("dog", 22, 18), image("cow", 50, 2)}, -1, 3},
			"the second not known": {[]block.Item{image("cat", 8, 12)}, 22, 1},
			"none":                 {nil, -1, 0},
		} {
			if x := r.lookup(block.Prompt{Tokens: append(slices.Clone(p), 1), Cut: c.cut, Items: c.items})[r1]; x.Depth != c.want {
				t.Errorf("%s: depth %d, want %d", name, x.Depth, c.want)
			}
		}
		asked := block.Prompt{Model: "m", Tokens: append(slices.Clone(p), 1), Cut: -1, Items: []block.Item{image("cat", 8, 12), image("cow", 22, 18)}}
		x := r.ix.Expect(r2, &asked)
		if got := r.lookup(asked); got[r2].Depth != 4 || got[r1].Depth != 1 {
			t.Errorf("placed on the second: %+v", got)
		}
		x.Release()
		if n := testing.AllocsPerRun(20, func() { r.ix.Lookup(&asked, &r.out) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func TestOrphans(t *testing.T) {
	p := tokens(1, 64)
	t.Run("IX-40 KV-48", func(t *testing.T) {
		r := newRig(t, Options{})
		r.apply(r1, r.event(gpu, 2, hashes(3, 4), p[32:]), Parked)
		r.depth(r1, p, 0)
		r.wait(time.Second)
		if o := r.apply(r1, r.event(gpu, top, hashes(1, 2), p[:32]), Applied); o.Attached != 1 {
			t.Errorf("%d attached", o.Attached)
		}
		r.depth(r1, p, 4)
	})
	t.Run("IX-41", func(t *testing.T) {
		r := newRig(t, Options{})
		r.apply(r1, r.event(gpu, 2, hashes(3, 4), p[32:]), Parked)
		r.now += int64(6 * time.Second)
		r.store(r1, gpu, top, hashes(1, 2), p[:32])
		r.depth(r1, p, 2)
		for i := range uint64(1024) {
			r.apply(r1, r.event(gpu, 1000+i, hashes(10000+i, 10000+i), p[:16]), Parked)
		}
		r.apply(r1, r.event(gpu, 999, hashes(9, 9), p[:16]), OrphanLost)
		if s := r.stats(r1); s.OrphansNow != 1024 || s.OrphansLost != 2 {
			t.Errorf("%+v", s)
		}
		r.wait(6 * time.Second)
		if s := r.stats(r1); s.OrphansNow != 0 || s.OrphanBlocks != 0 {
			t.Errorf("%+v", s)
		}
		big := hashes(1<<20, 1<<20+65_535)
		many := make([]uint32, 16*len(big))
		r.apply(r1, r.event(gpu, 999, big, many), Parked)
		r.apply(r1, r.event(gpu, 999, big[:1], many[:16]), OrphanLost) // block 65,537
		if s := r.stats(r1); s.OrphanBlocks != 65_536 {
			t.Errorf("%+v", s)
		}
		r.wait(5 * time.Second) // its parent comes at the last moment
		if s := r.stats(r1); s.OrphansNow != 1 {
			t.Errorf("after 5 s: %+v", s)
		}
		r.wait(1)
		if s := r.stats(r1); s.OrphansNow != 0 {
			t.Errorf("after more than 5 s: %+v", s)
		}
	})
	t.Run("IX-42", func(t *testing.T) {
		r := newRig(t, Options{})
		r.apply(r1, r.event(gpu, 3, hashes(4, 4), p[48:]), Parked)
		r.apply(r1, r.event(gpu, 2, hashes(3, 3), p[32:48]), Parked)
		r.apply(r1, r.event(gpu, 1, hashes(2, 2), p[16:32]), Parked)
		if o := r.apply(r1, r.event(gpu, top, hashes(1, 1), p[:16]), Applied); o.Attached != 3 {
			t.Errorf("%d attached", o.Attached)
		}
		r.depth(r1, p, 4)
	})
	t.Run("IX-43", func(t *testing.T) {
		r := newRig(t, Options{})
		r.apply(r1, r.event(gpu, 1, hashes(2, 4), p[16:]), Parked)
		if n := r.remove(r1, gpu, 3); n != 0 {
			t.Errorf("%d unknown", n)
		}
		r.store(r1, gpu, top, hashes(1, 1), p[:16])
		r.depth(r1, p, 2)
		r.apply(r1, r.event(host, 9, hashes(10, 10), p[16:32]), Parked)
		r.apply(r1, r.event(gpu, 9, hashes(11, 11), p[32:48]), Parked)
		r.apply(r1, &event.Event{Kind: event.Cleared}, Applied) // clears act on parked stores
		if s := r.stats(r1); s.OrphansNow != 1 {
			t.Errorf("%d parked", s.OrphansNow)
		}
	})
	t.Run("IX-46 KV-26", func(t *testing.T) {
		r := newRig(t, Options{})
		r.store(r1, gpu, top, hashes(1, 4), p)
		r.remove(r1, gpu, 4)
		r.store(r1, gpu, 3, hashes(4, 4), p[48:])
		r.depth(r1, p, 4)
		r.store(r2, gpu, top, hashes(1, 1), p[:16])
		r.remove(r2, gpu, 1)
		r.depth(r2, p, 0)
	})
}

func TestGroups(t *testing.T) {
	p := tokens(1, 64)
	other := func(r *rig, group int, kind string, window, size int, h []uint64) *event.Event {
		e := r.event(gpu, top, h, p)
		e.Group, e.SpecKind, e.Window, e.BlockSize = group, kind, window, size
		return e
	}
	t.Run("KV-33", func(t *testing.T) { // windows of blocks that are not the trie's
		r := newRig(t, Options{})
		for g, size := range []int{64, 64, 4, 8} {
			r.apply(r1, other(r, 1+g, "sliding_window_mla", 128, size, hashes(1, 2)), Applied) // sizes not known yet
		}
		e := other(r, 0, "mla_attention", 0, 16, hashes(1, 4))
		r.apply(r1, e, Applied)
		r.apply(r1, other(r, 2, "sliding_window_mla", 128, 64, hashes(1, 2)), OtherGroup)
		r.apply(r1, other(r, 5, "mamba", 0, 16, hashes(1, 2)), OtherGroup)
		r.apply(r1, &event.Event{Kind: event.Removed, Hashes: hashes(1, 4), Group: 1}, OtherGroup)
		r.apply(r1, &event.Event{Kind: event.Removed, Hashes: hashes(1, 4), Group: 9}, OtherGroup)
		r.depth(r1, p, 4)
		if x := r.match(r1, p); !x.Approximate {
			t.Errorf("%+v is not shown as approximate", x)
		}
		// A placeholder names no kind; its group is known.
		r.apply(r1, &event.Event{Kind: event.Stored, Tier: host, Hashes: hashes(1, 4), Group: 1}, OtherGroup)
		r.tiers(r1, p, 4)
		s := r.stats(r1)
		if len(s.Others) != 5 || s.Others[0] != (GroupKind{1, "sliding_window_mla", 128, 64, 2, false}) || s.Group != 0 || !s.Approximate {
			t.Errorf("%+v", s)
		}
		r.apply(r1, &event.Event{Kind: event.Removed, Hashes: hashes(1, 1), Group: 0}, Applied)
		r.depth(r1, p, 0)
	})
}

func TestSizes(t *testing.T) {
	p := tokens(1, 1000)
	t.Run("IX-70", func(t *testing.T) {
		r := newRig(t, Options{})
		r.store(r1, gpu, top, hashes(1, 62), p[:992])
		r.size = 64
		r.store(r2, gpu, top, hashes(1, 15), p[:960])
		got := r.lookup(block.Prompt{Tokens: p, Cut: -1})
		if a, b := got[r1], got[r2]; a.Depth*a.Size != 992 || b.Depth*b.Size != 960 || b.Size != 64 {
			t.Errorf("%+v %+v", a, b)
		}
		if s := r.ix.Stats().Sizes; !slices.Equal(s, []int{16, 64}) {
			t.Errorf("sizes %v", s)
		}
	})
	t.Run("IX-71 IX-72", func(t *testing.T) {
		r := newRig(t, Options{})
		r.size = 1
		r.store(r1, gpu, top, hashes(1, 1000), p)
		fork := append(slices.Clone(p[:777]), tokens(2, 223)...)
		r.depth(r1, p, 1000)
		r.depth(r1, fork, 777)
		// SGLang splits a radix node without an event: any page is a parent.
		r.store(r1, gpu, 300, hashes(2001, 2010), fork[777:787])
		r.depth(r1, slices.Concat(p[:300], fork[777:787]), 310)
	})
	t.Run("IX-73", func(t *testing.T) {
		r := newRig(t, Options{})
		r.store(r1, gpu, top, hashes(1, 1), p[:16])
		e := r.event(gpu, 1, hashes(2, 2), p[16:25])
		e.BlockSize = 9
		r.apply(r1, e, OtherSize)
		r.apply(r1, r.event(gpu, 2, hashes(3, 3), p[25:41]), Parked)
		r.depth(r1, p, 1)
	})
	t.Run("IX-74", func(t *testing.T) {
		r := newRig(t, Options{})
		r.apply(r1, r.event(gpu, top, hashes(1, 3), p[:64]), Sparse)
		if s := r.stats(r1); s.Verdicts[Sparse] != 1 || s.BlockSize != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("IX-75 KV-34", func(t *testing.T) {
		r := newRig(t, Options{})
		r.size = 528
		r.store(r1, gpu, top, hashes(1, 1), p[:528])
		r.depth(r1, p[:400], 0)
		r.depth(r1, p, 1)
		if r.ix.BlockSize(r1) != 528 || r.ix.BlockSize(r2) != 0 || r.ix.BlockSize(1023) != 0 {
			t.Error("block sizes")
		}
	})
	t.Run("IX-76", func(t *testing.T) {
		r := newRig(t, Options{})
		r.store(r1, gpu, top, hashes(1, 62), p[:992])
		e := r.event(host, top, []uint64{901, 902}, p[:512])
		e.BlockSize = 256
		r.apply(r1, e, Applied)
		r.apply(r1, &event.Event{Kind: event.Cleared}, Applied)
		r.tiers(r1, p, 0, 32)
		r.remove(r1, host, 902)
		r.tiers(r1, p, 0, 16)
		r.remove(r1, host, 901)
		r.depth(r1, p, 0)
	})
	t.Run("a wrong first size is corrected", func(t *testing.T) {
		r := newRig(t, Options{})
		e := r.event(host, top, hashes(901, 901), p[:256])
		e.BlockSize = 256
		r.apply(r1, e, Applied)
		r.store(r1, gpu, top, hashes(1, 4), p[:64]) // the GPU knows better at once
		r.depth(r1, p, 4)
		r.size = 32
		for i := range relearnAfter {
			want := OtherSize
			if i == relearnAfter-1 {
				want = Applied
			}
			r.apply(r1, r.event(gpu, top, hashes(11, 12), p[:64]), want)
		}
		if r.ix.BlockSize(r1) != 32 {
			t.Error("size not learned again")
		}
		r.depth(r1, p, 2)
	})
}

func TestManyMembers(t *testing.T) {
	p := tokens(1, 128*16)
	t.Run("IX-60", func(t *testing.T) {
		r := newRig(t, Options{})
		for m := range pod.Member(pod.MaxMembers) {
			r.ix.Register(m, Owner{Model: "m"})
			for a := 0; a < 128; a += 32 {
				parent := uint64(a)
				if a == 0 {
					parent = top
				}
				r.store(m, gpu, parent, hashes(uint64(a+1), uint64(a+32)), p[a*16:(a+32)*16])
			}
		}
		got := r.lookup(block.Prompt{Tokens: p, Cut: -1})
		if len(got) != pod.MaxMembers {
			t.Fatalf("%d members", len(got))
		}
		for m, x := range got {
			if x.Depth != 128 || x.Fastest[gpu] != 128 {
				t.Errorf("member %d: %+v", m, x)
			}
		}
		run := r.ix.runs.get(0)
		if g := run.groups(); len(g) != 1 {
			t.Errorf("%d groups after all hold the same", len(g))
		}
		q := &block.Prompt{Model: "m", Tokens: p, Cut: -1}
		if n := testing.AllocsPerRun(20, func() { r.ix.Lookup(q, &r.out) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
	t.Run("IX-61", func(t *testing.T) {
		r := newRig(t, Options{})
		ids := []pod.Member{63, 64, 65, 1023}
		for i, m := range ids {
			r.ix.Register(m, Owner{Model: "m"})
			r.store(m, gpu, top, hashes(1, uint64(i+1)), p[:16*(i+1)])
		}
		got := r.lookup(block.Prompt{Tokens: p, Cut: -1})
		for i, m := range ids {
			if int(got[m].Depth) != i+1 {
				t.Errorf("member %d: %+v", m, got[m])
			}
		}
		r.ix.Purge(64)
		if got = r.lookup(block.Prompt{Tokens: p, Cut: -1}); len(got) != 3 || got[64].Depth != 0 {
			t.Errorf("%v", got)
		}
	})
	t.Run("IX-62 KV-39", func(t *testing.T) { // a rank is a member
		r := newRig(t, Options{})
		r.store(r2, gpu, top, hashes(1, 4), p[:64])
		r.depth(r1, p, 0)
		r.depth(r2, p, 4)
	})
	t.Run("IX-83", func(t *testing.T) {
		r := newRig(t, Options{})
		for i, m := 0, pod.Member(0); m < pod.MaxMembers; i, m = i+1, m+13 {
			r.ix.Register(m, Owner{Model: "m"})
			n := 1 + i%100
			r.store(m, event.Tier(i%4), top, hashes(1, uint64(n)), p[:16*n])
			r.remove(m, event.Tier(i%4), uint64(1+i%50))
		}
		q := &block.Prompt{Model: "m", Tokens: p, Cut: -1}
		other := &block.Prompt{Model: "m", Tokens: p[:32], Cut: -1}
		r.ix.Lookup(q, &r.out)
		want := slices.Clone(r.out.Matches)
		if n := testing.AllocsPerRun(1000, func() {
			r.ix.Lookup(other, &r.out)
			r.ix.Lookup(q, &r.out)
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
		if !slices.Equal(r.out.Matches, want) {
			t.Error("a reused result differs")
		}
	})
}

func TestMember(t *testing.T) {
	p := tokens(1, 64)
	t.Run("unregistered", func(t *testing.T) {
		r := newRig(t, Options{})
		r.apply(77, r.event(gpu, top, hashes(1, 4), p), Unregistered)
		r.ix.Purge(77)
		r.ix.Expect(77, &block.Prompt{Tokens: p, Cut: -1}).Release()
		r.ix.Register(pod.MaxMembers, Owner{})
		if len(r.lookup(block.Prompt{Tokens: p, Cut: -1})) != 0 {
			t.Error("a stranger is reported")
		}
	})
	t.Run("another model under the same number", func(t *testing.T) {
		r := newRig(t, Options{})
		r.store(r1, gpu, top, hashes(1, 4), p)
		r.ix.Register(r1, Owner{Model: "m", Blocks: 100})
		r.depth(r1, p, 4)
		r.ix.Register(r1, Owner{Model: "n"})
		r.depth(r1, p, 0)
	})
}
