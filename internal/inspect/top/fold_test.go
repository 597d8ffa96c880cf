package top

import (
	"strings"
	"testing"
)

// TOP-12: ranks are folded into their pod, and unfold below it with what is placed on
// each; the selection goes with them.
func TestRanksUnfold(t *testing.T) {
	r := busy(t, 120, 40)
	r.has("vllm-c-0 ×2")
	r.hasNot("rank 0", "rank 1")
	r.keys("G x")
	r.has("rank 0", "rank 1", "gap(4)", "9000 1 waiting")
	r.keys("j j")
	if got := r.selection(); got != "rank" {
		t.Errorf("selected %q below the pod", got)
	}
	r.has("> " + "  rank 1")
	r.keys("enter") // of a rank: its pod
	r.has("rank 1  in flight 4, before the first token 1, queue 0.0 s")
	r.keys("esc x")
	r.hasNot("rank 0")
	if got := r.selection(); got != "vllm-c-0" {
		t.Errorf("folded from a rank: selected %q", got)
	}
	r.keys("g X")
	r.has("rank 0", "rank 1")
	r.keys("X")
	r.hasNot("rank 0")
	r.keys("j j x")
	r.has("vllm-a-1 has one rank")
	// Sorting keeps ranks below their pod.
	r.keys("X s s s s s s s")
	lines := strings.Split(r.plain(), "\n")
	for i, l := range lines {
		if strings.Contains(l, "rank 0") && !strings.Contains(lines[i-1], "vllm-c-0") {
			t.Errorf("rank 0 stands below %q", lines[i-1])
		}
	}
}
