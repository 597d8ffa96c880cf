package main

import (
	"runtime"
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
		if r.Value <= 0 && r.Name != "lookup_allocs" {
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
	if v := b.median("lookup_allocs"); v != 0 {
		t.Errorf("%v allocations per lookup", v)
	}
}
