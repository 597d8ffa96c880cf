package top

import (
	"testing"

	"github.com/eppctl/eppctl/internal/core/view"
)

// What is known of token ids stands in the head, by the worst model, and by model in
// a view of its own.
func TestTokenIDs(t *testing.T) {
	r := busy(t, 160, 50)
	r.has("IDS  failed at 4 (mistral")
	r.keys("4")
	r.has("passed", "21 probes", "192", "failed at 4", "long word", "not-run", "parity-pending", "the engine's")
	r.time = r.time.Add(5e9)
	r.has("197") // ages go on
	r.has("other")
	r.fleet.Tokenizers[3].Providers[0].Failed = nil
	r.frame(1e9)
	r.hasNot("other") // nobody asked about one
	r.keys("f")
	r.hasNot("llama-3.3")
	r.has("mistral", "new")
	r.keys("f s s s r r")
	if got := r.selection(); got != "llama-3.3-70b" {
		t.Errorf("selected %q", got)
	}
	r.keys("enter")
	r.has("MODEL     llama", "compared with vllm-a-1", "3 tokenize-slow", "equal 4100, differ 0", "acme/llama")
	r.fleet.Tokenizers = nil
	r.frame(1e9)
	r.has("nobody tells any in this frame")
	r.keys("esc")
	r.has("nobody tells token ids")
	r.hasNot("IDS")
	r.keys("enter e j")
	// A pod tells of its model.
	r.fleet.Tokenizers = tokenizers()[:1]
	r.frame(1e9)
	r.has("IDS  passed")
	r.keys("1 j j enter")
	r.has("IDS       native  ready  passed  21 probes  compared with vllm-a-1")
}

func TestVerdicts(t *testing.T) {
	for _, tc := range []struct {
		name   string
		parity *view.Parity
		want   verdict
		word   cell
		by     string
	}{
		{native, nil, doubtful, text(warn, "not-run"), ""},
		{native, &view.Parity{State: "not-run", Why: "parity-pending"}, doubtful, text(warn, "not-run"), "parity-pending"},
		{native, &view.Parity{State: "passed", Compared: 1}, passed, text(good, "passed"), "1 probe"},
		{native, &view.Parity{State: "failed", Why: "parity-events"}, differs, text(bad, "failed"), "parity-events"},
		{native, &view.Parity{State: "failed", Why: "parity-events-differ", DiffersAt: new(87), DiffersBlock: new(5)}, differs, text(bad, "failed at 87"), "parity-events-differ"},
		{native, &view.Parity{State: "failed", Why: "parity-probe", Probe: "p", DiffersAt: new(0)}, differs, text(bad, "failed at 0"), "p"},
		{native, &view.Parity{State: "a word of a later release"}, doubtful, text(warn, "not-run"), ""},
		{"render", nil, engines, text(dim, "the engine's"), ""},
	} {
		r := &idsRow{ProviderState: &view.ProviderState{Name: tc.name, Parity: tc.parity}}
		if r.verdict() != tc.want || r.word() != tc.word || r.by() != tc.by {
			t.Errorf("%s %+v: %v %q %q", tc.name, tc.parity, r.verdict(), r.word(), r.by())
		}
	}
}

// tokenizers are models of which one passed, one failed, one is not compared yet,
// and one has its ids from an engine alone.
func tokenizers() []view.TokenizerState {
	none := map[string]uint64{}
	files := &view.TokenizerFiles{Source: "acme/llama", Commit: "4f2a", Vocabulary: "tokenizer.json", SHA256: "00ff", Digest: "11ee", Split: "gpt2"}
	engine := view.ProviderState{Name: "render", State: "untried", Failed: none}
	return []view.TokenizerState{
		{Model: "llama-3.3-70b", Providers: []view.ProviderState{{Name: "native", State: "ready", Told: 91_204, Failed: map[string]uint64{"tokenize-slow": 3}, Files: files, Parity: &view.Parity{
			State: "passed", Engine: "vllm-a-1", Compared: 21, AgeMs: new(int64(192_000)), Requests: view.ParityRequests{Equal: 4_100, Unknown: 12},
		}}, engine}},
		{Model: "mistral\x1b[7m", Providers: []view.ProviderState{{Name: "native", State: "ready", Told: 17, Failed: none, Files: files, Parity: &view.Parity{
			State: "failed", Why: "parity-probe", Detail: `"long word" differs from id 4 on: [1 2] here, [1 3] in the engine (from id 3)`, Engine: "vllm-c-0",
			Compared: 20, Differed: 1, Skipped: 1, Probe: "long word", DiffersAt: new(4), AgeMs: new(int64(4_000)), Requests: view.ParityRequests{Equal: 2, Differs: 7},
		}}}},
		{Model: "new", Providers: []view.ProviderState{{Name: "native", State: "loading", Why: "loading", Failed: none, Parity: &view.Parity{State: "not-run", Why: "parity-pending"}}, engine}},
		{Model: "other", Providers: []view.ProviderState{{Name: "tokenize", State: "failing", Why: "tokenizer-missing", Detail: "GET /tokenize: 404", Failed: map[string]uint64{"tokenizer-missing": 2}}}},
	}
}
