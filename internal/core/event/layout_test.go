package event_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
)

// TestLayouts names every family of the README's table by its bytes.
func TestLayouts(t *testing.T) {
	one, none := []any{1}, []any(nil)
	stored := []any{"BlockStored", one, nil, []any{7, 8}, 2, nil, "GPU", nil, []any{nil}, 0, "full_attention", nil, "new"}
	first := func(n int) raw { return seq(stored[:n]...) }
	object := func(tag string, more ...any) raw {
		return obj(append([]any{"type", tag, "block_hashes", one}, more...)...)
	}
	vllm := []any{"token_ids", []any{7, 8}, "block_size", 2, "medium", "GPU", "lora_name", nil}
	for want, e := range map[string]raw{
		"array5":             first(5),
		"array6 (W2/S2)":     first(6),
		"array7 (W3/S3)":     first(7),
		"vllm/array8 (W4)":   first(8),
		"vllm/array9 (W5)":   first(9),
		"vllm/array10 (W6)":  first(10),
		"array11":            first(11),
		"vllm/array12 (W7)":  first(12),
		"array13+":           first(13),
		"sglang/array8 (S4)": seq("BlockStored", one, nil, []any{7, 8}, 2, nil, "GPU", map[string]any{"cache_salt": "s"}),
		"array2 (W2/S2)":     seq("BlockRemoved", one),
		"array3 (W3/S3)":     seq("BlockRemoved", one, "GPU"),
		"vllm/array4 (W6)":   seq("BlockRemoved", one, "GPU", 0),
		"vllm/array6 (W7)":   seq("BlockRemoved", one, "GPU", 0, "full_attention", nil),
		"array1":             seq("AllBlocksCleared"),
		"atom/array2":        seq("AllBlocksCleared", "CPU"),
		"atom/array5":        seq("BlockTransferred", one, "GPU", "CPU", 0),
		"atom/map":           object("BlockTransferred", "from_medium", "GPU", "to_medium", "CPU"),
		"map":                obj("type", "AllBlocksCleared"),
		"map (W8/S5)":        object("BlockRemoved", "medium", "GPU"),
		"map (W8/S6)":        object("BlockStored", vllm...),
		"vllm/map (W8)":      object("BlockStored", append(vllm, "group_idx", 0)...),
		"vllm/map (W9)":      object("BlockStored", append(vllm, "group_idx", 0, "session_id", "s")...),
		"sglang/map (S5)":    object("BlockStored", "token_ids", []any{7, 8}, "block_size", 2, "medium", "GPU"),
		"sglang/map (S6)":    object("BlockStored", append(vllm, "cache_salt", "s")...),
		"trtllm/map":         object("BlockStored", append(vllm, "locality", "LOCAL", "mm_keys", []any{nil})...),
		"dynamo/map":         object("BlockStored", "token_ids", []any{7, 8}, "block_size", 2),
		"mooncake":           object("BlockRemoved", "medium", "cpu", "object_key", "k"),

		"array6 (W2/S2)+bigram":  seq("BlockStored", one, nil, []any{[]any{7, 8}, []any{8, 9}}, 2, nil),
		"sglang/map (S5)+bigram": object("BlockStored", "token_ids", []any{[]any{7, 8}}, "block_size", 1, "medium", "GPU"),
	} {
		b := decode(t, batch(e))
		if len(b.Events) == 0 || b.Events[0].Layout != want {
			t.Errorf("%s: %+v, skipped %+v", want, b.Events, b.Skipped)
		}
	}
	two := decode(t, seq(1.5, []any{first(6), raw(seq("BlockRemoved", one))}))
	if a, b := two.Events[0].Layout, two.Events[1].Layout; a != "array6 (W1/S1)" || b != "array2 (W1/S1)" {
		t.Errorf("in a batch of two: %q, %q", a, b)
	}
	m := decode(t, obj("ts", 1.5, "events", []any{object("BlockRemoved", "medium", "GPU")}, "data_parallel_rank", none))
	if got := m.Events[0].Layout; got != "vllm/map (W8x)" {
		t.Errorf("in a map: %q", got)
	}
}

// TestCaptureLayouts: what the captured engines are is what their bytes say.
func TestCaptureLayouts(t *testing.T) {
	want := map[string][]string{
		"vllm-0.23.0/llama":          {"array1", "vllm/array12 (W7)", "vllm/array4 (W6)"},
		"vllm-0.32.0/llama":          {"map", "vllm/map (W8)", "vllm/map (W9)"},
		"vllm-0.32.0/gemma3":         {"map", "vllm/map (W8)"},
		"sglang-0.5.23/llama":        {"map", "map (W8/S5)", "sglang/map (S5)"},
		"llmd_sim_live.frames.txt":   {"array3 (W3/S3)", "vllm/array9 (W5)"},
		"llmd_sim_replay.frames.txt": {"array3 (W3/S3)", "vllm/array9 (W5)"},
	}
	for _, c := range captures(t) {
		if !c.own || want[c.name] == nil {
			continue
		}
		seen := map[string]bool{}
		var d event.Decoder
		var b event.Batch
		for _, p := range c.payloads {
			if err := d.Decode(p, &b); err != nil {
				t.Fatal(err)
			}
			for i := range b.Events {
				seen[b.Events[i].Layout] = true
			}
			if len(b.Unknown) > 0 {
				t.Errorf("%s: unknown %+v", c.name, b.Unknown)
			}
		}
		if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, want[c.name]) {
			t.Errorf("%s: %q, want %q", c.name, got, want[c.name])
		}
		delete(want, c.name)
	}
	if len(want) > 0 {
		t.Errorf("no capture of %v", want)
	}
}
