package block

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// slowKeys is the definition: each block with each item that has a token in it.
func slowKeys(h *Hasher, p *Prompt, size int) (keys []Key) {
	known := len(p.Tokens)
	if p.Cut >= 0 {
		known = min(known, p.Cut)
	}
	for from := 0; from+size <= known; from += size {
		var x Extra
		for _, it := range p.Items {
			touches := false
			for at := it.Offset; at < it.Offset+it.Length; at++ {
				touches = touches || at >= from && at < from+size
			}
			if touches {
				x = ExtraItem(x, it.ID, int64(it.Offset-from))
			}
		}
		keys = append(keys, h.WithExtra(h.Key(p.Tokens[from:from+size]), x))
	}
	return keys
}

func TestPromptKeysEqualDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	h := NewHasher(23)
	for range 3000 {
		size := []int{1, 2, 3, 16, 32}[r.IntN(5)]
		p := Prompt{Tokens: randomTokens(r, r.IntN(150)), Cut: r.IntN(200) - 50}
		for at := r.IntN(40); at < 140 && len(p.Items) < 6; {
			it := Item{ID: Extra(1 + r.IntN(3)), Offset: at, Length: 1 + r.IntN(30)}
			p.Items = append(p.Items, it)
			at = it.End() + r.IntN(2)*r.IntN(20)
		}
		got := h.PromptKeys([]Key{7}, &p, size)
		if want := append([]Key{7}, slowKeys(h, &p, size)...); !slices.Equal(got, want) {
			t.Fatalf("size %d, %d tokens, cut %d, items %v:\n%x\n%x", size, len(p.Tokens), p.Cut, p.Items, got, want)
		}
	}
}

// A block that an item touches is another one than without it, with another item, or
// with the same item elsewhere.
func TestItemsTellBlocksApart(t *testing.T) {
	h := NewHasher(24)
	tokens := randomTokens(rand.New(rand.NewPCG(25, 26)), 16)
	seen := map[Key]int{}
	for i, items := range [][]Item{
		nil,
		{{ID: IdentifyItem("a"), Offset: 0, Length: 4}},
		{{ID: IdentifyItem("b"), Offset: 0, Length: 4}},
		{{ID: IdentifyItem("a"), Offset: 1, Length: 4}},
		{{ID: IdentifyItem("a"), Offset: 0, Length: 4}, {ID: IdentifyItem("b"), Offset: 4, Length: 4}},
		{{ID: IdentifyItem("b"), Offset: 0, Length: 4}, {ID: IdentifyItem("a"), Offset: 4, Length: 4}},
		{{ID: IdentifyItem("a"), Offset: 0, Length: 4}, {ID: IdentifyItem("a"), Offset: 4, Length: 4}},
	} {
		key := h.PromptKeys(nil, &Prompt{Tokens: tokens, Cut: -1, Items: items}, 16)[0]
		if other, dup := seen[key]; dup {
			t.Errorf("%d and %d have one key", i, other)
		}
		seen[key] = i
	}
	if IdentifyItem("a") != IdentifyItem([]byte("a")) {
		t.Error("a string and its bytes differ")
	}
}
