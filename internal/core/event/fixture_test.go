package event_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/testdata"
)

// expectation is the form of NAME.expect.json beside NAME.msgpack; see the
// README there. Absent fields are zero, absent ids -1.
type expectation struct {
	At       float64
	Rank     *int
	Trailing int
	Events   []expectedEvent
	Skipped  []struct {
		Index       int
		Reason, Tag string
	}
}

type expectedEvent struct {
	Kind, Tier, Medium  string
	Shared              bool
	Hashes              []string
	HashForm            string `json:"hash_form"`
	Parent              *string
	Tokens              []uint32
	BlockSize           int    `json:"block_size"`
	LoRA                string `json:"lora"`
	LoRAID              *int64 `json:"lora_id"`
	Salt                *string
	Extra               []uint64
	Group               int
	SpecKind            string `json:"spec_kind"`
	Window              int
	Locality, Ownership string
	Layout              string
}

// acceptance names the fixtures' cases.
var acceptance = map[string]string{
	"vllm_w1_arr6_batch2":         "KV-01",
	"vllm_w1b_negative_int_hash":  "KV-02",
	"vllm_w2_arr6_batch3":         "KV-03",
	"vllm_w3_arr7_medium_int":     "KV-04",
	"vllm_w3_arr7_medium_bytes":   "KV-05",
	"vllm_w4_arr8_lora":           "KV-06",
	"vllm_w5_arr9_extra":          "KV-07",
	"vllm_w6_arr10_group":         "KV-08",
	"vllm_w7_arr12_spec":          "KV-09",
	"vllm_w8_map":                 "KV-10",
	"vllm_w8x_map_batch_map":      "KV-11",
	"vllm_w9_map_offload":         "KV-12",
	"sglang_s1_arr6_batch2":       "KV-13",
	"sglang_s2_arr6_batch3_null":  "KV-14",
	"sglang_s3_arr7_medium":       "KV-15",
	"sglang_s4_arr8_metadata_map": "KV-16",
	"sglang_s5_map":               "KV-17",
	"sglang_s5b_bigram_tokens":    "KV-18",
	"trtllm_dynamo_relay":         "KV-19",
	"llmd_fs_bin_wrapped":         "KV-20",
	"mooncake_master":             "KV-21",
}

// TestFixtures decodes every payload and compares it with what stands beside
// it. The project's own all have an expectation; others need none.
func TestFixtures(t *testing.T) {
	seen := map[string]bool{}
	for i, dir := range testdata.Dirs(t, "kv-events") {
		files, err := filepath.Glob(filepath.Join(dir, "*.msgpack"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no payloads in %s: %v", dir, err)
		}
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".msgpack")
			t.Run(filepath.Join(acceptance[name], name), func(t *testing.T) {
				payload, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				want, err := os.ReadFile(strings.TrimSuffix(file, ".msgpack") + ".expect.json")
				switch {
				case err == nil:
					compare(t, payload, want)
				case i > 0:
					var b event.Batch
					t.Logf("no expectation; decodes to %v, %d events, skipped %+v",
						new(event.Decoder).Decode(payload, &b), len(b.Events), b.Skipped)
				default:
					t.Fatal(err)
				}
				seen[name] = true
			})
		}
	}
	for name, id := range acceptance {
		if !seen[name] {
			t.Errorf("%s: fixture %s is missing", id, name)
		}
	}
}

func compare(t *testing.T, payload, sidecar []byte) {
	t.Helper()
	var want expectation
	dec := json.NewDecoder(strings.NewReader(string(sidecar)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&want); err != nil {
		t.Fatalf("expectation: %v", err)
	}
	var b event.Batch
	if err := new(event.Decoder).Decode(payload, &b); err != nil {
		t.Fatal(err)
	}
	rank := -1
	if want.Rank != nil {
		rank = *want.Rank
	}
	if b.At != want.At || b.Rank != rank || b.Trailing != want.Trailing {
		t.Errorf("at %v rank %d trailing %d, want %v %d %d", b.At, b.Rank, b.Trailing, want.At, rank, want.Trailing)
	}
	if len(b.Events) != len(want.Events) || len(b.Skipped) != len(want.Skipped) {
		t.Fatalf("%d events, skipped %+v, want %d and %d", len(b.Events), b.Skipped, len(want.Events), len(want.Skipped))
	}
	for i := range b.Events {
		if got, want := plain(&b.Events[i]), want.Events[i]; !reflect.DeepEqual(got, want) {
			t.Errorf("event %d:\n got %s\nwant %s", i, show(got), show(want))
		}
	}
	for i, s := range b.Skipped {
		if w := want.Skipped[i]; s.Index != w.Index || s.Reason != w.Reason || s.Tag != w.Tag {
			t.Errorf("skip %d is %+v, want %+v", i, s, w)
		}
	}
}

// plain brings a decoded event into the sidecar's form.
func plain(e *event.Event) expectedEvent {
	x := expectedEvent{
		Kind: e.Kind.String(), Tier: e.Tier.String(), Medium: e.Medium, Shared: e.Shared,
		HashForm: e.HashForm, BlockSize: e.BlockSize, LoRA: e.LoRA,
		Group: e.Group, SpecKind: e.SpecKind, Window: e.Window,
		Locality: e.Locality, Ownership: e.Ownership, Layout: e.Layout,
	}
	for _, h := range e.Hashes {
		x.Hashes = append(x.Hashes, hashText(h))
	}
	x.Tokens = append(x.Tokens, e.Tokens...)
	x.Extra = append(x.Extra, e.Extra...)
	if e.HasParent {
		p := hashText(e.Parent)
		x.Parent = &p
	}
	if e.LoRAID != -1 {
		x.LoRAID = &e.LoRAID
	}
	if e.HasSalt {
		x.Salt = &e.Salt
	}
	return x
}

func hashText(h uint64) string { return fmt.Sprintf("%016x", h) }

func show(v any) string {
	s, err := json.Marshal(v)
	if err != nil {
		return strconv.Quote(err.Error())
	}
	return string(s)
}
