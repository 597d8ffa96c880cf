package index

import (
	"slices"
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
)

// A reader loads a run's length, then its array. So before a length is
// published, an array must be that holds so many keys, be it the old one or a
// new one; until then nothing a reader sees may have changed.
func TestKeysArePublishedBeforeTheirNumber(t *testing.T) {
	key := func(n int) (keys []block.Key) {
		for i := range n {
			keys = append(keys, block.Key(1000*n+i))
		}
		return keys
	}
	ix := New(Options{Seed: 1})
	sh := &ix.shards[0]
	sh.lock()
	defer sh.unlock()
	all := key(3)
	r := ix.newRun(&sh.root, 0, all, spaces{})
	grown := 0
	for _, n := range []int{1, 1, 1, 2, 40, 1, 300, 1, 2000, 1} {
		before, arr := slices.Clone(all), r.arr.Load()
		more := key(n)
		all = append(all, more...)

		next := r.extend(more)
		if got := r.n.Load(); got != uint32(len(before)) {
			t.Fatalf("%d keys are published while %d more are written", got, n)
		}
		if next != uint32(len(all)) || !slices.Equal(r.keys(next), all) {
			t.Fatalf("the array a reader finds with length %d does not hold these keys", next)
		}
		if r.arr.Load() != arr {
			grown++
			old := run{}
			old.arr.Store(arr)
			if !slices.Equal(old.keys(uint32(len(before))), before) {
				t.Fatal("the array of a reader changed")
			}
		}
		r.n.Store(next)
		r.append([]block.Key{7})
		if all = append(all, 7); !slices.Equal(r.keys(r.n.Load()), all) {
			t.Fatal("append publishes something else")
		}
	}
	if grown < 3 || grown == 10 {
		t.Errorf("%d of 10 times the array was a new one: both ways were to be seen", grown)
	}
}
