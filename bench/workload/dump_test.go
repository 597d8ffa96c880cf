package workload

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// small is a workload of two conversations in which everything can be told by
// hand: rank 0 has one of them on its GPU, another rank half of it there and
// the rest on the host.
func small() *Workload {
	g := generator{rand.New(rand.NewPCG(1, 1))}
	w := &Workload{Ranks: 3, Order: []int{1, 0}}
	root := g.tokens(nil, Shared)
	for range 2 {
		c := Conversation{Tokens: g.tokens(root, 200)}
		c.Aliases = aliases(c.Tokens)
		w.Conversations = append(w.Conversations, c)
	}
	w.Conversations[0].Holders = []Holder{{Rank: 0, GPU: 328}, {Rank: 1, GPU: 140, Host: 280}}
	w.Conversations[1].Holders = []Holder{{Rank: 1, GPU: 300}}
	return w
}

func TestTruths(t *testing.T) {
	w := small()
	two := w.Truths(true)
	want := []Truth{
		{328, 328}, {140, 280}, {0, 0}, // conversation 0 on ranks 0, 1, 2
		{128, 128}, {300, 300}, {0, 0},
	}
	if !reflect.DeepEqual(two[:6], want) { // Checked alternates between the two
		t.Errorf("truths %v, want %v", two[:6], want)
	}
	want[1].Depth = 140
	if one := w.Truths(false); !reflect.DeepEqual(one[:6], want) {
		t.Errorf("one tier: %v, want %v", one[:6], want)
	}
}

func TestDumpReadsBack(t *testing.T) {
	w := small()
	d := &Dump{Workload: w, Draws: &Draws{
		Short: []int{1, 0}, Long: []int{0}, Refresh: []Pick{{0, 1}}, Evict: []Pick{{1, 0}, {0, 0}}, Decode: []Pick{{0, 1}}, Steps: []Pick{{0, 0}, {1, 0}},
	}, OneTier: w.Truths(false), TwoTiers: w.Truths(true)}
	path := filepath.Join(t.TempDir(), "dump")
	if err := d.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, d) {
		t.Error("the dump reads back as something else")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{"cut": b[:len(b)-3], "foreign": []byte("something else entirely")} {
		if err := os.WriteFile(path, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil {
			t.Errorf("a %s file is read without error", name)
		}
	}
}

func TestDraws(t *testing.T) {
	w := New(64)
	d := w.Draw()
	for i, p := range d.Evict {
		if s := w.Tail(p); s.From != Shared || s.To <= s.From {
			t.Fatalf("eviction %d: stretch [%d, %d)", i, s.From, s.To)
		}
		for _, q := range d.Evict[max(0, i-Window):i] {
			if p == q {
				t.Fatalf("eviction %d: %v was evicted and is not back yet", i, p)
			}
		}
	}
	seen := map[Pick]bool{}
	for _, p := range d.Decode {
		if seen[p] || w.Holder(p).GPU < Shared+Grown {
			t.Fatalf("decoder %v", p)
		}
		seen[p] = true
	}
	for _, i := range d.Long {
		if w.Conversations[i].Blocks() != Long {
			t.Fatalf("conversation %d is not long", i)
		}
	}
}
