package block

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func randomTokens(r *rand.Rand, n int) []uint32 {
	t := make([]uint32, n)
	for i := range t {
		t[i] = r.Uint32N(128000)
	}
	return t
}

// slowKey is the definition: chunks of 16 tokens, zero-filled, folded in turn.
func slowKey(h *Hasher, tokens []uint32) Key {
	if len(tokens) == 1 {
		return Key(uint64(tokens[0]) * h.odd)
	}
	var x uint64
	for i := 0; i < len(tokens); i += chunk {
		var w [8]uint64
		for j := i; j < min(i+chunk, len(tokens)); j++ {
			w[(j-i)/2] |= uint64(tokens[j]) << (32 * ((j - i) % 2))
		}
		for j := range w {
			w[j] ^= h.lane[j]
		}
		x = fold(fold(w[0], w[1])^fold(w[2], w[3])^x^h.end[0], fold(w[4], w[5])^fold(w[6], w[7])^h.end[1])
	}
	return Key(x)
}

func TestKeyEqualsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	h := NewHasher(99)
	for _, size := range []int{1, 2, 3, 8, 15, 16, 17, 32, 64, 256, 528, 544, 768} {
		for range 200 {
			tokens := randomTokens(r, size)
			if got, want := h.Key(tokens), slowKey(h, tokens); got != want {
				t.Fatalf("size %d: key %x, want %x", size, got, want)
			}
		}
	}
}

func TestKeyDependsOnEveryTokenAndItsPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, size := range []int{1, 2, 7, 16, 32, 528} {
		h := NewHasher(r.Uint64())
		tokens := randomTokens(r, size)
		want := h.Key(tokens)
		for i := range tokens {
			for bit := range 32 {
				tokens[i] ^= 1 << bit
				if h.Key(tokens) == want {
					t.Errorf("size %d: token %d bit %d has no effect", size, i, bit)
				}
				tokens[i] ^= 1 << bit
			}
			for j := range i {
				if tokens[i] == tokens[j] {
					continue
				}
				tokens[i], tokens[j] = tokens[j], tokens[i]
				if h.Key(tokens) == want {
					t.Errorf("size %d: swapping tokens %d and %d has no effect", size, i, j)
				}
				tokens[i], tokens[j] = tokens[j], tokens[i]
			}
		}
	}
}

// Keys must look random: with 2^20 of them none may collide (expected 3e-8).
func TestKeysDoNotCollide(t *testing.T) {
	h := NewHasher(5)
	seen := make(map[Key]struct{}, 1<<20)
	tokens := make([]uint32, 16)
	for i := range uint32(1 << 20) {
		tokens[i%16] = i // small, structured differences
		seen[h.Key(tokens)] = struct{}{}
	}
	if len(seen) != 1<<20 {
		t.Errorf("%d collisions", 1<<20-len(seen))
	}
}

func TestOneTokenKeysAreExact(t *testing.T) {
	h := NewHasher(6)
	seen := map[Key]bool{}
	for i := range uint32(1 << 18) {
		seen[h.Key([]uint32{i})] = true
	}
	if len(seen) != 1<<18 {
		t.Errorf("%d keys of %d tokens", len(seen), 1<<18)
	}
}

func TestSeedIsSecret(t *testing.T) {
	tokens := randomTokens(rand.New(rand.NewPCG(7, 8)), 16)
	if NewHasher(1).Key(tokens) == NewHasher(2).Key(tokens) {
		t.Error("two seeds, one key")
	}
	if a, b := NewHasher(1), NewHasher(1); a.Key(tokens) != b.Key(tokens) {
		t.Error("one seed, two keys")
	}
}

func TestMatch(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	h := NewHasher(11)
	for _, size := range []int{1, 2, 16, 32, 528} {
		const blocks = 20
		tokens := randomTokens(r, size*blocks+size-1)
		keys := make([]Key, blocks)
		for i := range keys {
			keys[i] = h.Key(tokens[i*size : (i+1)*size])
		}
		if n, _ := h.Match(keys, tokens, size); n != blocks {
			t.Errorf("size %d: %d of %d equal blocks", size, n, blocks)
		}
		for i := range keys {
			keys[i]++
			n, miss := h.Match(keys, tokens, size)
			if n != i || miss != keys[i]-1 {
				t.Errorf("size %d: stopped at %d with %x, want %d with %x", size, n, miss, i, keys[i]-1)
			}
			keys[i]--
		}
	}
}

func TestSpace(t *testing.T) {
	h := NewHasher(12)
	spaces := []Namespace{
		{"m", "", "", 16}, {"m", "", "", 32}, {"n", "", "", 16}, {"m", "x", "", 16}, {"m", "", "x", 16},
		{"mx", "", "", 16}, {"", "mx", "", 16}, {"m", "x", "x", 16}, {"m", "xx", "", 16}, {"", "", "", 16},
		{"meta-llama/Llama-3.1-8B-Instruct", "", "", 16}, {"meta-llama/Llama-3.1-8B-Instruct", "", "tenant-a", 16},
		{"meta-llama/Llama-3.1-8B-Instruct\x00", "", "", 16},
	}
	seen := map[Space]Namespace{}
	for _, ns := range spaces {
		if other, ok := seen[h.Space(ns)]; ok {
			t.Errorf("%+v and %+v share a space", ns, other)
		}
		seen[h.Space(ns)] = ns
	}
}

func TestWithExtra(t *testing.T) {
	h := NewHasher(13)
	if h.WithExtra(7, 0) != 7 {
		t.Error("no extra content must not change the key")
	}
	seen := map[Key]Extra{7: 0}
	for _, e := range []Extra{1, 2, ExtraString(0, "a"), ExtraInt(ExtraString(0, "a"), 1)} {
		if other, ok := seen[h.WithExtra(7, e)]; ok {
			t.Errorf("extra %x and %x give one key", e, other)
		}
		seen[h.WithExtra(7, e)] = e
	}
}

func TestNoAllocation(t *testing.T) {
	h := NewHasher(14)
	tokens := randomTokens(rand.New(rand.NewPCG(1, 1)), 528)
	ns := Namespace{Model: "meta-llama/Llama-3.1-8B-Instruct", LoRA: "sql", Salt: "tenant-a", Size: 16}
	var sink Key
	if n := testing.AllocsPerRun(100, func() {
		sink += h.Key(tokens) + h.Key(tokens[:16]) + h.Key(tokens[:9]) + h.Root(h.Space(ns), sink)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkKey(b *testing.B) {
	h := NewHasher(15)
	for _, size := range []int{1, 16, 32, 64, 528} {
		tokens := randomTokens(rand.New(rand.NewPCG(1, 1)), size)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(4 * size))
			var sink Key
			for range b.N {
				sink += h.Key(tokens)
			}
			_ = sink
		})
	}
	tokens := randomTokens(rand.New(rand.NewPCG(1, 1)), 16*2048)
	keys := make([]Key, 2048)
	for i := range keys {
		keys[i] = h.Key(tokens[i*16 : i*16+16])
	}
	b.Run("match/16", func(b *testing.B) {
		for range b.N {
			if n, _ := h.Match(keys, tokens, 16); n != 2048 {
				b.Fatal(n)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2048, "ns/block")
	})
	b.Run("key+compare/16", func(b *testing.B) {
		for range b.N {
			for i, k := range keys {
				if h.Key(tokens[i*16:i*16+16]) != k {
					b.Fatal(i)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2048, "ns/block")
	})
}
