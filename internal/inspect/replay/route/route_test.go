package route

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/inspect/replay/engine"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
)

const second = int64(1e9)

// rig is one router before pods with blocks of 512 tokens.
type rig struct {
	Router
	fleet *Fleet
	n     int
}

func newRig(t *testing.T, policy string, pods int) *rig {
	t.Helper()
	p, err := ByName(policy)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := engine.ProfileByName("32b-tp2-h100")
	if err != nil {
		t.Fatal(err)
	}
	f := &Fleet{Pods: pods, Profile: profile, BlockSize: 512, Distinct: 10_000, Seed: 1}
	for i := range pods {
		f.Engines = append(f.Engines, engine.New(profile, engine.Options{BlockSize: 512, Rand: rand.New(rand.NewPCG(1, uint64(i)))}))
	}
	x, err := p.Make(f)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{Router: x, fleet: f}
}

// request is one whose prompt fills the blocks.
func (r *rig) request(blocks ...uint32) *Request {
	r.n++
	return &Request{Request: &workload.Request{Prompt: 512 * len(blocks), Output: 1, Blocks: blocks}, Index: r.n, ID: fmt.Sprintf("r-%d", r.n)}
}

// span is the blocks from a to below b.
func span(a, b uint32) (list []uint32) {
	for ; a < b; a++ {
		list = append(list, a)
	}
	return list
}

// store announces blocks as an engine does.
func (r *rig) store(pod int, blocks ...uint32) {
	r.Announce(pod, []engine.Change{{Stored: true, Root: true, Blocks: blocks}}, 0)
}

// picks counts where n requests of fresh blocks go, none of them ever answered.
func (r *rig) picks(n int, now int64) (count []int) {
	count = make([]int, r.fleet.Pods)
	for i := range n {
		count[r.Pick(r.request(span(uint32(5000+10*i), uint32(5004+10*i))...), now)]++
	}
	return count
}

// Every policy that looks at caches sends a prompt to the pod that announced it,
// when nothing else speaks against; the others do not look.
func TestMatchDraws(t *testing.T) {
	for _, p := range Policies() {
		if p.Kind == Baseline || p.Kind == Omniscient || p.Name == "sglang" || p.Name == "dynamo" {
			continue
		}
		r := newRig(t, p.Name, 5)
		r.store(3, span(0, 20)...)
		for range 5 {
			q := r.request(span(0, 21)...)
			if got := r.Pick(q, second); got != 3 {
				t.Errorf("%s: pod %d, want 3 which holds it", p.Name, got)
			}
			r.First(q, second)
			r.End(q, false, second)
		}
	}
}

// What a removal takes back draws no more.
func TestRemovalForgets(t *testing.T) {
	for _, name := range []string{"pool", "lmetric", "min-ttft"} {
		r := newRig(t, name, 2)
		r.store(1, span(0, 20)...)
		r.Announce(1, []engine.Change{{Blocks: span(0, 20)}}, 0)
		seen := map[int]bool{}
		for i := range 40 {
			q := r.request(append(span(0, 20), uint32(100+i))...)
			seen[r.Pick(q, second)] = true
			r.End(q, true, second) // it was never computed
		}
		if len(seen) != 2 {
			t.Errorf("%s: all went to %v", name, seen)
		}
	}
}

// Prompts without a common block spread over an idle fleet; round robin does so
// exactly.
func TestSpread(t *testing.T) {
	for _, p := range Policies() {
		if p.Kind == Omniscient || p.Name == "llmd-scraped" {
			continue // their signals come from engines, of which there are none here
		}
		count := newRig(t, p.Name, 4).picks(80, second)
		least, most := 80, 0
		for _, n := range count {
			least, most = min(least, n), max(most, n)
		}
		limit := 4
		if p.Name == "random" || p.Name == "prefix-hash" || p.Name == "llmd-blend" {
			limit = 30
		}
		if p.Name == "round-robin" {
			limit = 0
		}
		if most-least > limit {
			t.Errorf("%s: %v", p.Name, count)
		}
	}
}

// A pod that is down gets nothing, with every pod down nobody does, and one that
// comes back is empty and takes part.
func TestDownAndUp(t *testing.T) {
	for _, p := range Policies() {
		r := newRig(t, p.Name, 3)
		r.store(1, span(0, 20)...)
		r.Down(1, second)
		for i := range 20 {
			q := r.request(append(span(0, 20), uint32(200+i))...)
			if got := r.Pick(q, second); got == 1 || got < 0 {
				t.Fatalf("%s: pod %d while 1 is down", p.Name, got)
			}
			r.End(q, false, second)
		}
		r.Down(0, second)
		r.Down(2, second)
		if got := r.Pick(r.request(1), second); got != -1 {
			t.Errorf("%s: pod %d of none", p.Name, got)
		}
		r.Up(1, 2*second)
		q := r.request(span(0, 21)...)
		if got := r.Pick(q, 2*second); got != 1 {
			t.Errorf("%s: pod %d, want the one that came back", p.Name, got)
		}
	}
}

// The sticky rule keeps to the warm pod up to its gap; the blend counts what it
// placed itself.
func TestRules(t *testing.T) {
	r := newRig(t, "llmd-sticky", 2)
	r.store(0, span(0, 40)...)
	stays := 0
	for range 200 {
		if r.Pick(r.request(append(span(0, 36), span(uint32(300+10*r.n), uint32(309+10*r.n))...)...), second) != 0 {
			break
		}
		stays++
	}
	// 18 s at 36 us a token are 500,000 tokens; each adds nine blocks of 512.
	if stays < 100 || stays > 115 {
		t.Errorf("sticky left the warm pod after %d requests, want about 108", stays)
	}
	r = newRig(t, "aibrix", 3)
	r.store(0, span(0, 20)...)
	stays = 0
	for range 30 {
		if r.Pick(r.request(append(span(0, 20), uint32(400+r.n))...), second) != 0 {
			break
		}
		stays++
	}
	if stays != 1 {
		t.Errorf("aibrix stayed %d times, want once: then the warm pod is one deviation above the mean", stays)
	}
	r = newRig(t, "sglang", 2)
	first := r.Pick(r.request(span(0, 10)...), second)
	if again := r.Pick(r.request(span(0, 11)...), second); again != first {
		t.Error("sglang forgets where it sent the beginning")
	}
	if other := r.Pick(r.request(span(50, 60)...), second); other == first {
		t.Error("sglang's new prompt goes to the larger tree")
	}
}

// The product's own settings are those of eppctl.yaml, and nothing else passes.
func TestSettings(t *testing.T) {
	profile, _ := engine.ProfileByName("8b-h100")
	pol, err := Settings{{"breaker.depth", "16"}, {"alpha", "2.5"}}.policy("fixed", &profile)
	if err != nil || pol.Breaker.Depth != 16 || pol.Breaker.Ratio != 2 || pol.Alpha != 2.5 || pol.Beta != 0.02 || pol.TokensPerSecond != 1/24e-6 {
		t.Errorf("%+v, %v", pol, err)
	}
	for _, s := range []Setting{{"x", "1"}, {"alpha", "x"}, {"alpha", ".nan"}, {"breaker", "1"}, {"alpha", "1}, {beta: 3"}, {"breaker.depth", "0"}} {
		if _, err := (Settings{s}).policy("pool", &profile); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v", s, err)
		}
	}
	for text, ok := range map[string]bool{"alpha=1": true, "kv=1": true, "breaker.depth=16": true, "alpha": false, "=1": false, "alpha=": false, "kvv=1": false, "alpha=x": false} {
		s, err := ParseSetting(text)
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if _, err := (Settings{s}).policy("pool", &profile); ok && err != nil {
			t.Errorf("%q passes and %v", text, err)
		}
	}
}

// A history drops the tail of the prompt it has not seen longest.
func TestHistory(t *testing.T) {
	h := newHistory(6)
	h.touch(span(0, 4))
	h.touch(span(10, 14))
	if got := h.match(span(0, 4)); got != 2 || h.match(span(10, 14)) != 4 || h.len() != 6 {
		t.Errorf("%d of the older prompt are left, want 2", got)
	}
}
