package testdata

import (
	"slices"
	"testing"

	"github.com/tinylib/msgp/msgp"
)

// Obj is a msgpack map: keys and values in turn, written in the order given.
type Obj []any

// Pack appends v in msgpack as an engine would write it.
func Pack(tb testing.TB, b []byte, v any) []byte {
	tb.Helper()
	switch v := v.(type) {
	case Obj:
		b = msgp.AppendMapHeader(b, uint32(len(v)/2))
		for _, x := range v {
			b = Pack(tb, b, x)
		}
		return b
	case []any:
		b = msgp.AppendArrayHeader(b, uint32(len(v)))
		for _, x := range v {
			b = Pack(tb, b, x)
		}
		return b
	}
	b, err := msgp.AppendIntf(b, v)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Batch is a batch of events of one step; rank nil = not said.
func Batch(tb testing.TB, rank any, events ...any) []byte {
	tb.Helper()
	return Pack(tb, nil, []any{1.7e9, events, rank})
}

// Stored is the store of one block of size tokens in vLLM's form; keys given
// replace its own.
func Stored(hash, parent any, size int, keys ...any) Obj {
	ids := make([]any, size)
	for i := range ids {
		ids[i] = i
	}
	o := Obj{"type", "BlockStored", "block_hashes", []any{hash}, "parent_block_hash", parent, "token_ids", ids,
		"block_size", size, "lora_id", nil, "medium", "GPU", "lora_name", nil}
	for i := 0; i < len(keys); i += 2 {
		if at := slices.Index(o, keys[i]); at >= 0 {
			o[at+1] = keys[i+1]
		} else {
			o = append(o, keys[i], keys[i+1])
		}
	}
	return o
}
