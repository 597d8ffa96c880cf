package index_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/testdata"
)

// frames reads the payloads of a frames file: the last word of each line.
func frames(t *testing.T, name string) (payloads [][]byte) {
	raw, err := os.ReadFile(filepath.Join(testdata.Dirs(t, "frames")[0], name))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] == "#" || f[len(f)-1] == "-" {
			continue // comments, and the end marker of a replay
		}
		p, err := hex.DecodeString(f[len(f)-1])
		if err != nil {
			t.Fatal(err)
		}
		payloads = append(payloads, p)
	}
	if len(payloads) != 5 {
		t.Fatalf("%s: %d messages", name, len(payloads))
	}
	return payloads
}

// TestSimulatorFrames follows an engine that evicts at the head and in the
// middle of its chains.
func TestSimulatorFrames(t *testing.T) {
	want := []struct {
		resident       int
		p1, p2, p3, l1 int
	}{{5, 5, 3, 0, 0}, {12, 5, 10, 0, 0}, {24, 3, 3, 18, 0}, {24, 1, 1, 18, 5}, {24, 5, 3, 0, 5}}
	for id, file := range map[string]string{"KV-22": "llmd_sim_live.frames.txt", "KV-23": "llmd_sim_replay.frames.txt"} {
		t.Run(id, func(t *testing.T) {
			var d event.Decoder
			batches := make([]event.Batch, 5)
			for i, p := range frames(t, file) {
				if err := d.Decode(p, &batches[i]); err != nil {
					t.Fatal(err)
				}
			}
			stored := func(seq int) []uint32 { // the tokens of the last store
				es := batches[seq-1].Events
				return es[len(es)-1].Tokens
			}
			p1 := stored(1)
			p2 := append(append([]uint32{}, p1[:48]...), stored(2)...)
			p3 := stored(3)
			ix := index.New(index.Options{Seed: 1})
			ix.Register(0, index.Owner{Model: "m", Engine: pod.EngineVLLM})
			depth := func(tokens []uint32, lora string) int {
				var out index.Result
				ix.Lookup(&block.Prompt{Model: "m", LoRA: lora, Tokens: tokens, Cut: -1}, &out)
				if len(out.Matches) == 0 {
					return 0
				}
				return int(out.Matches[0].Depth)
			}
			for i, w := range want {
				for j := range batches[i].Events {
					ix.Apply(0, &batches[i].Events[j], 0)
				}
				s, _ := ix.Member(0)
				got := w
				got.resident = s.Blocks[event.TierGPU]
				got.p1, got.p2, got.p3, got.l1 = depth(p1, ""), depth(p2, ""), depth(p3, ""), depth(p1, "lora1")
				if got != w {
					t.Errorf("after message %d: %+v, want %+v", i+1, got, w)
				}
			}
		})
	}
}

// TestWireFixtures applies recorded events whose meaning is more than their
// decoding.
func TestWireFixtures(t *testing.T) {
	apply := func(t *testing.T, name string) (*index.Index, []index.Outcome, index.MemberStats) {
		raw, err := os.ReadFile(filepath.Join(testdata.Dirs(t, "kv-events")[0], name+".msgpack"))
		if err != nil {
			t.Fatal(err)
		}
		var d event.Decoder
		var b event.Batch
		if err := d.Decode(raw, &b); err != nil {
			t.Fatal(err)
		}
		ix := index.New(index.Options{Seed: 1})
		ix.Register(0, index.Owner{Model: "m"})
		var out []index.Outcome
		for i := range b.Events {
			out = append(out, ix.Apply(0, &b.Events[i], 0))
		}
		s, _ := ix.Member(0)
		return ix, out, s
	}
	verdicts := func(out []index.Outcome) (v []index.Verdict) {
		for _, o := range out {
			v = append(v, o.Verdict)
		}
		return v
	}
	const ok = index.Applied
	for _, c := range []struct {
		id, file string
		verdicts []index.Verdict
		blocks   [event.NumTiers]int
	}{
		{"KV-01", "vllm_w1_arr6_batch2", []index.Verdict{ok, ok, ok}, [4]int{}},
		{"KV-02", "vllm_w1b_negative_int_hash", []index.Verdict{index.Parked}, [4]int{}},
		{"KV-03", "vllm_w2_arr6_batch3", []index.Verdict{index.Parked}, [4]int{}},
		{"KV-04", "vllm_w3_arr7_medium_int", []index.Verdict{ok, ok}, [4]int{}},
		{"KV-09", "vllm_w7_arr12_spec", []index.Verdict{ok}, [4]int{1}},
		{"KV-12", "vllm_w9_map_offload", []index.Verdict{index.Parked, ok}, [4]int{}},
		{"KV-15", "sglang_s3_arr7_medium", []index.Verdict{index.Parked, ok, ok}, [4]int{1, 1}},
		{"KV-17", "sglang_s5_map", []index.Verdict{ok, index.OtherSpace, ok, ok}, [4]int{}},
		{"KV-18", "sglang_s5b_bigram_tokens", []index.Verdict{ok}, [4]int{1}},
		{"KV-20", "llmd_fs_bin_wrapped", []index.Verdict{index.SharedMedium}, [4]int{}},
		{"KV-21", "mooncake_master", []index.Verdict{index.SharedMedium}, [4]int{}},
	} {
		t.Run(c.id, func(t *testing.T) {
			_, out, s := apply(t, c.file)
			if got := verdicts(out); len(got) != len(c.verdicts) {
				t.Fatalf("%v, want %v", got, c.verdicts)
			}
			for i, v := range verdicts(out) {
				if v != c.verdicts[i] {
					t.Errorf("event %d: %v, want %v", i, v, c.verdicts[i])
				}
			}
			if s.Blocks != c.blocks {
				t.Errorf("%v blocks, want %v", s.Blocks, c.blocks)
			}
		})
	}
	t.Run("KV-06", func(t *testing.T) {
		ix, _, _ := apply(t, "vllm_w4_arr8_lora")
		var out index.Result
		p := &block.Prompt{Model: "m", Tokens: []uint32{1, 200, 70000, 151643}, Cut: -1}
		if ix.Lookup(p, &out); len(out.Matches) != 0 {
			t.Errorf("the base model has %+v", out.Matches)
		}
		p.LoRA = "sql"
		if ix.Lookup(p, &out); len(out.Matches) != 1 || out.Matches[0].Depth != 1 {
			t.Errorf("the adapter has %+v", out.Matches)
		}
	})
	t.Run("KV-07", func(t *testing.T) {
		ix, _, _ := apply(t, "vllm_w5_arr9_extra")
		for salt, want := range map[string]int{"salt": 1, "": 0, "other": 0} {
			var out index.Result
			ix.Lookup(&block.Prompt{Model: "m", Salt: salt, Tokens: []uint32{1, 200, 70000, 151643}, Cut: -1}, &out)
			if len(out.Matches) != want || want > 0 && out.Matches[0].Depth != 2 {
				t.Errorf("salt %q has %+v", salt, out.Matches)
			}
		}
	})
	t.Run("KV-05", func(t *testing.T) { // a digest of 32 bytes, removed by its integer
		ix, _, s := apply(t, "vllm_w3_arr7_medium_bytes")
		o := ix.Apply(0, &event.Event{Kind: event.Removed, Hashes: []uint64{13366815110101616827}}, 0)
		if s.Blocks[event.TierGPU] != 1 || o.Unknown != 0 {
			t.Errorf("%+v, then %+v", s, o)
		}
		if s, _ = ix.Member(0); s.Blocks[event.TierGPU] != 0 {
			t.Errorf("%+v", s)
		}
	})
}
