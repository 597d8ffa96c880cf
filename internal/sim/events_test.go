package sim

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"github.com/eppctl/eppctl/internal/testdata"
)

// What the simulator would send for the events a real engine sent is, byte for
// byte, what the engine sent.
func TestWireFormEqualsTheEngines(t *testing.T) {
	for _, tt := range []struct {
		dir    string
		sglang bool
	}{{"vllm-0.32.0/llama", false}, {"sglang-0.5.23/llama", true}} {
		t.Run(tt.dir, func(t *testing.T) {
			f, err := os.Open(filepath.Join(testdata.Dirs(t, "engines")[0], tt.dir, "frames.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			lines := bufio.NewScanner(f)
			lines.Buffer(nil, 16<<20)
			n := 0
			for lines.Scan() {
				var line struct {
					Payload string `json:"payload_hex"`
				}
				if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
					t.Fatal(err)
				}
				want, err := hex.DecodeString(line.Payload)
				if err != nil {
					t.Fatal(err)
				}
				unix, events, size := readBatch(t, want)
				if got := encodeBatch(nil, unix, events, size, tt.sglang); !bytes.Equal(got, want) {
					t.Fatalf("batch %d:\n got %x\nwant %x", n, got, want)
				}
				n++
			}
			if n < 50 {
				t.Fatalf("only %d batches", n)
			}
		})
	}
}

// readBatch reads a captured batch back into the simulator's events.
func readBatch(t *testing.T, b []byte) (unix float64, events []kvEvent, size int) {
	t.Helper()
	v, _, err := msgp.ReadIntfBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	batch := v.([]any)
	for _, raw := range batch[1].([]any) {
		m := raw.(map[string]any)
		var e kvEvent
		switch m["type"] {
		case "AllBlocksCleared":
			e.kind = clearedEvent
		case "BlockRemoved":
			e.kind = removedEvent
		}
		if list, ok := m["block_hashes"].([]any); ok {
			for _, h := range list {
				e.hashes = append(e.hashes, digestOf(h))
			}
		}
		if e.kind == storedEvent {
			e.first = m["parent_block_hash"] == nil
			if !e.first {
				e.parent = digestOf(m["parent_block_hash"])
			}
			for _, id := range m["token_ids"].([]any) {
				e.tokens = append(e.tokens, uint32(number(id)))
			}
			size = int(number(m["block_size"]))
			e.ns.adapter, _ = m["lora_name"].(string)
			e.session, _ = m["session_id"].(string)
			e.ns.salt, _ = m["cache_salt"].(string)
			if keys, ok := m["extra_keys"].([]any); ok {
				if first, ok := keys[0].([]any); ok {
					e.ns.salt, _ = first[len(first)-1].(string)
				}
			}
			if e.ns.salt == e.ns.adapter {
				e.ns.salt = ""
			}
		}
		events = append(events, e)
	}
	return batch[0].(float64), events, size
}

func digestOf(v any) (d digest) {
	binary.BigEndian.PutUint64(d[:8], number(v))
	return d
}

func number(v any) uint64 {
	switch v := v.(type) {
	case int64:
		return uint64(v)
	case uint64:
		return v
	}
	panic(fmt.Sprintf("%T", v))
}
