package main

import (
	"encoding/binary"
	"os"

	"github.com/tinylib/msgp/msgp"
)

const blockSize = 16 // tokens; vLLM's default

// workload is what every publisher of a run sends, over and over: stores of new
// prompts, then a clear. The stores are as vLLM 0.32.0 writes them.
type workload struct {
	name   string // of the payload's size
	blocks int    // per store: what makes the size
	token  uint32 // ids are drawn below: their width on the wire
	stores int    // before the clear
	count  int    // messages that are measured
}

// The sizes of the table. A batch of 200 bytes has room for the names of its
// fields and one block of small ids.
var workloads = []workload{
	{name: "200B", blocks: 1, token: 128, stores: 256, count: 200_000},
	{name: "2kB", blocks: 31, token: 32_000, stores: 64, count: 100_000},
	{name: "60kB", blocks: 1030, token: 32_000, stores: 4, count: 6000},
}

// share is one publisher's batches. Two publishers have no block in common, which
// gives the index the most to do.
func (w *workload) share(publisher int) [][]byte {
	draw := splitmix(uint64(publisher) + 1)
	var out [][]byte
	for range w.stores {
		out = append(out, w.store(&draw))
	}
	return append(out, cleared())
}

// store is a batch of one event: the blocks of a prompt, from its start.
func (w *workload) store(draw *splitmix) []byte {
	b := msgp.AppendMapHeader(batch(), 11)
	b = msgp.AppendString(msgp.AppendString(b, "type"), "BlockStored")
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "block_hashes"), uint32(w.blocks))
	for range w.blocks {
		b = msgp.AppendUint64(b, draw.next())
	}
	b = msgp.AppendNil(msgp.AppendString(b, "parent_block_hash"))
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "token_ids"), uint32(w.blocks*blockSize))
	for range w.blocks * blockSize {
		b = msgp.AppendUint64(b, draw.next()%uint64(w.token))
	}
	b = msgp.AppendInt(msgp.AppendString(b, "block_size"), blockSize)
	b = msgp.AppendNil(msgp.AppendString(b, "lora_id"))
	b = msgp.AppendString(msgp.AppendString(b, "medium"), "GPU")
	b = msgp.AppendNil(msgp.AppendString(b, "lora_name"))
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "extra_keys"), uint32(w.blocks))
	for range w.blocks {
		b = msgp.AppendNil(b)
	}
	b = msgp.AppendInt(msgp.AppendString(b, "group_idx"), 0)
	b = msgp.AppendString(msgp.AppendString(b, "kv_cache_spec_kind"), "full_attention")
	return msgp.AppendInt(b, 0)
}

func cleared() []byte {
	b := msgp.AppendMapHeader(batch(), 1)
	return msgp.AppendInt(msgp.AppendString(msgp.AppendString(b, "type"), "AllBlocksCleared"), 0)
}

// batch begins a batch of one event; the rank comes behind it.
func batch() []byte {
	return msgp.AppendArrayHeader(msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 3), 1.8e9), 1)
}

// write stores the shares of n publishers the way libzmq/peer.c reads them.
func (w *workload) write(path string, n int) error {
	var sizes, data []byte
	count := uint32(0)
	for p := range n {
		for _, b := range w.share(p) {
			sizes = binary.NativeEndian.AppendUint32(sizes, uint32(len(b)))
			data = append(data, b...)
			count++
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, part := range [][]byte{binary.NativeEndian.AppendUint32(nil, count), sizes, data} {
		if _, err := f.Write(part); err != nil {
			return err
		}
	}
	return f.Close()
}

// splitmix is Vigna's SplitMix64: the same numbers on every machine.
type splitmix uint64

func (s *splitmix) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
