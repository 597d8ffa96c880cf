package event_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"github.com/eppctl/eppctl/internal/core/event"
)

// TestDecoderAgainstTree reads every capture of the project a second time through a generic
// tree of values, with nothing in common but the msgpack library.
func TestDecoderAgainstTree(t *testing.T) {
	for _, c := range captures(t) {
		if !c.own {
			continue // the tree's reader knows the layouts of these alone
		}
		t.Run(c.name, func(t *testing.T) {
			var d event.Decoder
			var b event.Batch
			for _, payload := range c.payloads {
				if err := d.Decode(payload, &b); err != nil {
					t.Fatal(err)
				}
				tree, _, err := msgp.ReadIntfBytes(payload)
				if err != nil {
					t.Fatal(err)
				}
				events := tree.([]any)[1].([]any)
				if len(events) != len(b.Events) {
					t.Fatalf("%d events, the tree has %d", len(b.Events), len(events))
				}
				for i, v := range events {
					e, w := &b.Events[i], treeEvent(v)
					if e.Kind != w.kind || !slices.Equal(e.Hashes, w.hashes) || !slices.Equal(e.Tokens, w.tokens) ||
						e.HasParent != w.hasParent || e.Parent != w.parent || e.BlockSize != w.size || e.Group != w.group {
						t.Fatalf("event %+v\ntree %+v", e, w)
					}
				}
			}
		})
	}
}

type treeStore struct {
	kind        event.Kind
	hashes      []uint64
	tokens      []uint32
	parent      uint64
	hasParent   bool
	size, group int
}

func treeEvent(v any) (w treeStore) {
	m, isMap := v.(map[string]any)
	if !isMap {
		names := map[string][]string{
			"BlockStored": {
				"type", "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id",
				"medium", "lora_name", "extra_keys", "group_idx", "kv_cache_spec_kind", "kv_cache_spec_sliding_window",
			},
			"BlockRemoved":     {"type", "block_hashes", "medium", "group_idx"},
			"AllBlocksCleared": {"type"},
		}
		m = map[string]any{}
		for i, x := range v.([]any) {
			m[names[v.([]any)[0].(string)][i]] = x
		}
	}
	w.kind = map[string]event.Kind{"BlockStored": event.Stored, "BlockRemoved": event.Removed, "AllBlocksCleared": event.Cleared}[m["type"].(string)]
	w.hashes = []uint64{}
	list, _ := m["block_hashes"].([]any)
	for _, h := range list {
		w.hashes = append(w.hashes, treeHash(h))
	}
	list, _ = m["token_ids"].([]any)
	for _, id := range list {
		w.tokens = append(w.tokens, uint32(treeHash(id)))
	}
	if p := m["parent_block_hash"]; p != nil {
		w.parent, w.hasParent = treeHash(p), true
	}
	if n := m["block_size"]; n != nil {
		w.size = int(treeHash(n))
	}
	if n := m["group_idx"]; n != nil {
		w.group = int(treeHash(n))
	}
	return w
}

func treeHash(v any) uint64 {
	switch v := v.(type) {
	case int64:
		return uint64(v)
	case uint64:
		return v
	case []byte:
		return binary.BigEndian.Uint64(v[len(v)-8:])
	}
	panic("no hash")
}
