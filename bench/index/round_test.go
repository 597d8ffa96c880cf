package main

import (
	"runtime"
	"strings"
	"testing"
)

// TestRound runs all parts once, with few lookups. Each part checks the index's
// answers, and the budget that the cap is held and the hot prompts are kept.
func TestRound(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b := newBench(20)
	if err := b.round(); err != nil {
		t.Fatal(err)
	}
	if err := b.budget(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range b.rows() { // panics if a row was not measured
		if seen[r.Name] {
			t.Errorf("two rows are called %s", r.Name)
		}
		seen[r.Name] = true
		if r.Value <= 0 && r.Name != "lookup_allocs" && !strings.HasPrefix(r.Name, "lock_") { // nobody need wait
			t.Errorf("%s is %v", r.Name, r.Value)
		}
	}
	for _, name := range []string{
		"lookup_2048_hot", "lookup_2048_cold", "lookup_512_hot", "lookup_allocs",
		"bytes_per_block", "lookup_1024_members", "stored_blocks_per_second",
	} {
		if !seen[name] {
			t.Errorf("no row is called %s", name)
		}
	}
	t.Run("IX-91", func(t *testing.T) { gates(t, b) })
}

// gates are far above what is measured: they notice a change of kind, such as
// a key hashed twice or a map where an array was, not a busy machine. Times are
// the thread's own, beside the hash of the same tokens in the same minute.
func gates(t *testing.T, b *bench) {
	if v := b.median("lookup_allocs"); v != 0 {
		t.Errorf("%v allocations per lookup", v)
	}
	for _, suffix := range []string{"", "_two_tiers"} {
		hot, floor := b.median("lookup_2048_hot"+suffix), b.median("floor_2048"+suffix)
		if hot > 2*floor {
			t.Errorf("lookup_2048_hot%s: %.1f us, over twice the floor of %.1f us", suffix, hot, floor)
		}
	}
	for _, name := range []string{"bytes_per_block", "bytes_per_block_one_tier"} {
		if v := b.median(name); v > 64 {
			t.Errorf("%s: %.1f, over 64", name, v)
		}
	}
}
