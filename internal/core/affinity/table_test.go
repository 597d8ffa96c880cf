package affinity

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// fleet adds pods by name, in order.
func fleet(t testing.TB, names ...string) *pod.Table {
	t.Helper()
	table := pod.NewTable()
	for _, n := range names {
		if _, err := table.Add(pod.Spec{Name: n, Address: n}, netip.AddrPort{}); err != nil {
			t.Fatal(err)
		}
	}
	return table
}

func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("pod-%d", i))
	}
	return list
}

// digest is the prefix of a text in the namespace of model m.
func (t *Table) digest(text string) Prefix {
	d := t.Digest(Namespace{Model: "m"})
	d.Write([]byte(text))
	return d.Prefix()
}

// text is n bytes that share nothing with another seed's.
func text(seed, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d:%d ", seed, i)
	}
	return b.String()[:n]
}

func TestLookup(t *testing.T) {
	pods := fleet(t, "a", "b", "c")
	set := pods.Snapshot()
	table, out := NewTable(1000), &Result{}
	trunk := text(1, 4*ChunkBytes)
	table.Place(set.Pods[0], table.digest(trunk+text(2, 3*ChunkBytes)))
	table.Place(set.Pods[1], table.digest(trunk+text(3, 5*ChunkBytes)))
	for _, tc := range []struct {
		name, text string
		want       [3]int // chunks per pod
	}{
		{"the same", trunk + text(2, 3*ChunkBytes), [3]int{7, 4, 0}},
		{"longer", trunk + text(3, 5*ChunkBytes) + "more", [3]int{4, 9, 0}},
		{"the trunk alone", trunk, [3]int{4, 4, 0}},
		{"one byte less than the trunk", trunk[:len(trunk)-1], [3]int{3, 3, 0}},
		{"another beginning", "x" + trunk[1:], [3]int{}},
		{"another byte in the third chunk", trunk[:1100] + "#" + trunk[1101:], [3]int{2, 2, 0}},
		{"shorter than a chunk", trunk[:ChunkBytes-1], [3]int{}},
		{"nothing", "", [3]int{}},
	} {
		table.Lookup(table.digest(tc.text), set, out)
		for i, want := range tc.want {
			if got := out.Bytes(set.Pods[i].ID); got != want*ChunkBytes {
				t.Errorf("%s: pod %d has %d bytes, want %d", tc.name, i, got, want*ChunkBytes)
			}
		}
	}
}

// Equal bytes of two models, adapters or salts have no cache in common.
func TestNamespaces(t *testing.T) {
	table := NewTable(100)
	seen := map[Key]Namespace{}
	for _, ns := range []Namespace{{}, {Model: "a"}, {LoRA: "a"}, {Salt: "a"}, {Model: "a", LoRA: "b"}, {Model: "b", LoRA: "a"}, {Model: "ab"}} {
		d := table.Digest(ns)
		d.Write([]byte(text(1, ChunkBytes)))
		k := d.Prefix().Keys[0]
		if other, taken := seen[k]; taken {
			t.Errorf("%+v and %+v have the same key", ns, other)
		}
		seen[k] = ns
	}
}

// A pod that left has nothing, and neither has the one that gets its number.
func TestRemovedPodHoldsNothing(t *testing.T) {
	pods := fleet(t, "a", "b")
	set := pods.Snapshot()
	table, out := NewTable(numShards*10), &Result{} // room for all chunks in any one shard
	p := table.digest(text(1, 10*ChunkBytes))
	old := set.Pods[0]
	table.Place(old, p)
	table.Place(set.Pods[1], p)
	pods.Remove(old.ID)
	pods.Free(old)
	table.Lookup(p, pods.Snapshot(), out)
	if got := out.Bytes(old.ID); got != 0 {
		t.Errorf("a removed pod has %d bytes", got)
	}
	heir, err := pods.Add(pod.Spec{Name: "heir"}, netip.AddrPort{})
	if err != nil || heir.ID != old.ID {
		t.Fatalf("%v %v", heir, err)
	}
	table.Place(old, p) // a placement that began before the removal
	table.Lookup(p, pods.Snapshot(), out)
	if got := out.Bytes(heir.ID); got != 0 {
		t.Errorf("the pod that got its number inherits %d bytes", got)
	}
	if got := out.Bytes(set.Pods[1].ID); got != 10*ChunkBytes {
		t.Errorf("the other pod has %d bytes", got)
	}
}

func TestForget(t *testing.T) {
	set := fleet(t, "a", "b").Snapshot()
	table, out := NewTable(numShards*20), &Result{}
	both, one := table.digest(text(1, 10*ChunkBytes)), table.digest(text(2, 10*ChunkBytes))
	table.Place(set.Pods[0], both)
	table.Place(set.Pods[1], both)
	table.Place(set.Pods[0], one)
	table.Forget(set.Pods[0].ID)
	if n := table.Chunks(); n != 10 {
		t.Errorf("%d chunks are left, want the 10 of the other pod", n)
	}
	table.Lookup(both, set, out)
	if a, b := out.Bytes(set.Pods[0].ID), out.Bytes(set.Pods[1].ID); a != 0 || b != 10*ChunkBytes {
		t.Errorf("pods have %d and %d bytes", a, b)
	}
	table.Place(set.Pods[0], one) // in the room that became free
	table.Lookup(one, set, out)
	if a := out.Bytes(set.Pods[0].ID); a != 10*ChunkBytes {
		t.Errorf("placed again: %d bytes", a)
	}
	table.Forget(set.Pods[0].ID)
	table.Forget(set.Pods[0].ID) // a second time, with nothing placed between
	table.Place(set.Pods[0], one)
	table.Forget(set.Pods[0].ID)
	table.Lookup(one, set, out)
	if a := out.Bytes(set.Pods[0].ID); a != 0 || table.Chunks() != 10 {
		t.Errorf("forgotten again: %d bytes, %d chunks", a, table.Chunks())
	}
}

// The table never grows above its bound, and what was placed last is found.
func TestBound(t *testing.T) {
	set := fleet(t, "a").Snapshot()
	table, out := NewTable(1024), &Result{}
	var last Prefix
	for seed := range 200 {
		last = table.digest(text(seed, 16*ChunkBytes))
		table.Place(set.Pods[0], last)
	}
	if n := table.Chunks(); n > 1024 {
		t.Errorf("%d chunks", n)
	}
	table.Lookup(last, set, out)
	if got := out.Bytes(set.Pods[0].ID); got != 16*ChunkBytes {
		t.Errorf("the last prompt: %d bytes", got)
	}
	table.Lookup(table.digest(text(0, 16*ChunkBytes)), set, out)
	if got := out.Bytes(set.Pods[0].ID); got != 0 {
		t.Errorf("the first prompt: %d bytes", got)
	}
}

// A chunk that more pods were given than it remembers keeps the last ones, and a
// pod that fell out of the trunk is found by what it has alone.
func TestManyHolders(t *testing.T) {
	set := fleet(t, names(40)...).Snapshot()
	table, out := NewTable(4096), &Result{}
	trunk := text(0, 4*ChunkBytes)
	for i, p := range set.Pods {
		table.Place(p, table.digest(trunk+text(100+i, 2*ChunkBytes)))
	}
	table.Lookup(table.digest(trunk), set, out)
	for i, p := range set.Pods {
		want := 0
		if i >= len(set.Pods)-numHolders {
			want = 4 * ChunkBytes
		}
		if got := out.Bytes(p.ID); got != want {
			t.Errorf("pod %d: %d bytes of the trunk, want %d", i, got, want)
		}
	}
	table.Lookup(table.digest(trunk+text(103, 2*ChunkBytes)), set, out)
	if got := out.Bytes(set.Pods[3].ID); got != 6*ChunkBytes {
		t.Errorf("pod 3 has %d bytes of its own prompt", got)
	}
}

func TestLongPromptIsCut(t *testing.T) {
	table := NewTable(10)
	d := table.Digest(Namespace{})
	for range maxChunks + 10 {
		d.Write(make([]byte, ChunkBytes))
	}
	if p := d.Prefix(); len(p.Keys) != maxChunks || p.Bytes != (maxChunks+10)*ChunkBytes {
		t.Errorf("%d keys, %d bytes", len(p.Keys), p.Bytes)
	}
}

func TestNoTable(t *testing.T) {
	var table *Table
	set, out := fleet(t, "a").Snapshot(), &Result{}
	table.Place(set.Pods[0], Prefix{Keys: []Key{1}})
	table.Forget(0)
	table.Lookup(Prefix{Keys: []Key{1}}, set, out)
	if out.Bytes(0) != 0 || table.Chunks() != 0 {
		t.Error("something is held by nobody")
	}
}

// oracle is the table without bounds: all that was placed, by prefix.
type oracle map[string]map[pod.ID]bool

func (o oracle) place(id pod.ID, text string) {
	for n := ChunkBytes; n <= len(text); n += ChunkBytes {
		if o[text[:n]] == nil {
			o[text[:n]] = map[pod.ID]bool{}
		}
		o[text[:n]][id] = true
	}
}

func (o oracle) bytes(id pod.ID, text string) (n int) {
	for m := ChunkBytes; m <= len(text) && o[text[:m]][id]; m += ChunkBytes {
		n = m
	}
	return n
}

func (o oracle) forget(id pod.ID) {
	for _, m := range o {
		delete(m, id)
	}
}

// TestOracle: as long as everything fits, the table says what a map of all
// prefixes says.
func TestOracle(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		set := fleet(t, names(numHolders)...).Snapshot()
		table, out, all := NewTable(1<<14), &Result{}, oracle{}
		prompts := []string{""}
		for range 200 {
			base := prompts[r.IntN(len(prompts))]
			p := base[:r.IntN(len(base)+1)] + text(r.IntN(8), r.IntN(6*ChunkBytes))
			prompts = append(prompts, p)
			id := set.Pods[r.IntN(len(set.Pods))].ID
			switch r.IntN(20) {
			case 0:
				table.Forget(id)
				all.forget(id)
			default:
				table.Place(set.ByID(id), table.digest(p))
				all.place(id, p)
			}
			q := prompts[r.IntN(len(prompts))]
			table.Lookup(table.digest(q), set, out)
			for _, x := range set.Pods {
				if got, want := out.Bytes(x.ID), all.bytes(x.ID, q); got != want {
					t.Fatalf("seed %d: pod %d: %d bytes of a prompt of %d, want %d", seed, x.ID, got, len(q), want)
				}
			}
		}
	}
}

// FuzzDigest: the pieces in which a prompt is written make no difference, and the
// keys of a beginning are the beginning of the keys.
func FuzzDigest(f *testing.F) {
	f.Add([]byte(text(1, 2000)), uint16(7), uint16(900))
	f.Add([]byte{}, uint16(0), uint16(0))
	f.Fuzz(func(t *testing.T, b []byte, step, cut uint16) {
		table := NewTable(64)
		whole := table.Digest(Namespace{Model: "m"})
		whole.Write(b)
		pieces := table.Digest(Namespace{Model: "m"})
		for piece := range slices.Chunk(b, int(step)+1) {
			pieces.Write(piece)
		}
		if got, want := pieces.Prefix(), whole.Prefix(); !slices.Equal(got.Keys, want.Keys) || got.Bytes != want.Bytes {
			t.Fatalf("in pieces of %d: %d keys, %d bytes; want %d, %d", step+1, len(got.Keys), got.Bytes, len(want.Keys), want.Bytes)
		}
		begin := b[:min(int(cut), len(b))]
		part := table.Digest(Namespace{Model: "m"})
		part.Write(begin)
		if got, want := part.Prefix().Keys, whole.Prefix().Keys; len(got) != len(begin)/ChunkBytes || !slices.Equal(got, want[:len(got)]) {
			t.Fatalf("the first %d bytes have other keys", len(begin))
		}
	})
}

// FuzzTable: whatever is placed and forgotten, the bound holds, no list breaks,
// and nobody has more of a prompt than there is.
func FuzzTable(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 5, 6, 7, 1, 1, 1})
	f.Add(bytes.Repeat([]byte{9, 17, 250}, 40))
	f.Fuzz(func(t *testing.T, ops []byte) {
		set := fleet(t, names(5)...).Snapshot()
		table, out := NewTable(64), &Result{}
		for i := 0; i+2 < len(ops); i += 3 {
			p, body := set.Pods[ops[i]%5], strings.Repeat(string(rune('a'+ops[i+1]%7)), int(ops[i+2])*ChunkBytes/16)
			if ops[i+1] > 240 {
				table.Forget(p.ID)
			} else {
				table.Place(p, table.digest(body))
			}
			table.Lookup(table.digest(body), set, out)
			for _, x := range set.Pods {
				if n := out.Bytes(x.ID); n > len(body) {
					t.Fatalf("%d bytes of %d", n, len(body))
				}
			}
		}
		if n := table.Chunks(); n > 64 {
			t.Fatalf("%d chunks in a table of 64", n)
		}
		for i := range table.shards {
			s, n := &table.shards[i], 0
			for at := s.newest; at != none; at = s.entries[at].older {
				if n++; n > len(s.entries) {
					t.Fatal("the list runs in a circle")
				}
			}
			if n != len(s.at) {
				t.Fatalf("%d entries in the list, %d in the map", n, len(s.at))
			}
		}
	})
}

func TestAllocs(t *testing.T) {
	set := fleet(t, names(8)...).Snapshot()
	table, out := NewTable(1024), &Result{}
	prompts := make([]Prefix, 64)
	for i := range prompts {
		prompts[i] = table.digest(text(i, 64*ChunkBytes))
	}
	work := func() {
		for i, p := range prompts { // four times what fits: every placement evicts
			table.Place(set.Pods[i%8], p)
			table.Lookup(p, set, out)
		}
	}
	work()
	if n := testing.AllocsPerRun(20, work); n > 0 {
		t.Errorf("%v allocations in %d placements and lookups", n, len(prompts))
	}
}

// TestRace is for the race detector: all methods at once.
func TestRace(t *testing.T) {
	pods := fleet(t, names(8)...)
	table := NewTable(512)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			out := &Result{}
			for i := range 300 {
				set := pods.Snapshot()
				p := table.digest(text(i%20, (1+i%9)*ChunkBytes))
				switch {
				case i%50 == g:
					table.Forget(set.Pods[g].ID)
				case i%2 == 0:
					table.Place(set.Pods[g], p)
				default:
					table.Lookup(p, set, out)
				}
			}
			table.Chunks()
		})
	}
	wg.Wait()
	if n := table.Chunks(); n > 512 {
		t.Errorf("%d chunks", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	set := fleet(b, names(64)...).Snapshot()
	table, out := NewTable(DefaultChunks), &Result{}
	body := []byte(text(1, 128<<10))
	d := table.Digest(Namespace{})
	d.Write(body)
	for _, p := range set.Pods {
		table.Place(p, d.Prefix())
	}
	b.Run("digest", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			table.Digest(Namespace{}).Write(body)
		}
	})
	b.Run("lookup", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			table.Lookup(d.Prefix(), set, out)
		}
	})
}
