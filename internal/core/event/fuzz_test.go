package event_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/testdata"
)

// What a payload may make the decoders allocate: the densest is a list of
// one-byte elements, each of which is skipped with a note of 72 bytes, in a slice
// that append doubles as it grows.
const (
	allocPerByte = 512
	allocFloor   = 256 << 10 // tables, jsontext's buffers, and the fuzzing engine's own
)

// bounded fails when do allocates more than its input's length allows.
func bounded(t *testing.T, size int, do func()) {
	t.Helper()
	testdata.Bounded(t, uint64(allocFloor+allocPerByte*size), do)
}

func FuzzDecode(f *testing.F) {
	for _, p := range fixtures(f) {
		f.Add(p)
	}
	for _, c := range captures(f) {
		for i, p := range c.payloads {
			if i%8 == 0 {
				f.Add(p)
			}
		}
	}
	f.Add([]byte(pulledStore(1, 4096, nil, "1:4", "2:1")))
	f.Fuzz(func(t *testing.T, payload []byte) {
		var d event.Decoder
		var b event.Batch
		var err error
		bounded(t, len(payload), func() { err = d.Decode(payload, &b) })
		if err != nil {
			if len(b.Events)+len(b.Skipped) != 0 {
				t.Fatal("an error left events")
			}
			return
		}
		// A transfer is two events.
		if len(b.Events)+len(b.Skipped) > len(payload) || b.Trailing >= len(payload) {
			t.Fatalf("%d events, %d skipped, %d trailing of %d bytes", len(b.Events), len(b.Skipped), b.Trailing, len(payload))
		}
		if b.At != b.At {
			t.Fatal("time is NaN")
		}
		checkBatch(t, &b, len(payload))
		for _, s := range b.Skipped {
			if s.Offset < 0 || s.Offset >= len(payload) {
				t.Fatalf("skip %+v", s)
			}
		}
	})
}

// checkBatch holds what every decoder promises.
func checkBatch(t *testing.T, b *event.Batch, size int) {
	t.Helper()
	for i := range b.Events {
		e := &b.Events[i]
		if e.Kind < event.Stored || e.Kind > event.Cleared || len(e.Extra) != 0 && len(e.Extra) != len(e.Hashes) || e.BlockSize < 0 || e.Layout == "" {
			t.Fatalf("event %+v", e)
		}
		if len(e.Hashes) > size || len(e.Tokens) > size {
			t.Fatalf("event of %d hashes and %d tokens from %d bytes", len(e.Hashes), len(e.Tokens), size)
		}
		if e.Tier >= event.NumTiers && !(e.Tier == event.TierAll && e.Kind != event.Stored) {
			t.Fatalf("tier %v of %+v", e.Tier, e)
		}
	}
	for _, s := range b.Skipped {
		if s.Reason == "" || s.Before < 0 || s.Before > len(b.Events) || len(s.Tag) > 64 {
			t.Fatalf("skip %+v", s)
		}
	}
	if len(b.Unknown) > 16 {
		t.Fatalf("%d unknown names", len(b.Unknown))
	}
	for _, u := range b.Unknown {
		if len(u.Name) > 64 || u.Count < 1 {
			t.Fatalf("unknown %+v", u)
		}
	}
}

// FuzzParseFrames takes a message as the lengths of its first two frames and all
// frames' bytes.
func FuzzParseFrames(f *testing.F) {
	for _, c := range captures(f) {
		f.Add(uint8(3), uint8(2), uint8(8), append([]byte("kv\x00\x00\x00\x00\x00\x00\x00\x07"), c.payloads[0]...))
	}
	f.Add(uint8(3), uint8(0), uint8(4), []byte{1, 2, 3, 4, 5})
	f.Add(uint8(2), uint8(2), uint8(9), []byte("kv no sequence"))
	f.Fuzz(func(t *testing.T, n, topicLen, seqLen uint8, all []byte) {
		var frames [][]byte
		rest := all
		for i := range n {
			size := len(rest)
			switch i {
			case 0:
				size = min(size, int(topicLen))
			case 1:
				size = min(size, int(seqLen))
			}
			frames, rest = append(frames, rest[:size]), rest[size:]
		}
		var topic string
		var seq uint64
		var payload []byte
		var err error
		bounded(t, len(all), func() { topic, seq, payload, err = event.ParseFrames(frames) })
		good := len(frames) == 3 && len(frames[1]) == 8
		if good != (err == nil) {
			t.Fatalf("%d frames: %v", len(frames), err)
		}
		if err != nil {
			if fe, ok := err.(*event.FramingError); !ok || fe.Frames != len(frames) {
				t.Fatalf("%v", err)
			}
			return
		}
		if seq != binary.BigEndian.Uint64(frames[1]) || !bytes.Equal(payload, frames[2]) ||
			!bytes.HasPrefix(frames[0], []byte(topic)) || bytes.IndexByte([]byte(topic), 0) >= 0 {
			t.Fatalf("%q %d of %q", topic, seq, frames)
		}
	})
}

// FuzzParseReply takes an answer of a replay port as the length of each frame but
// the last, and all frames' bytes.
func FuzzParseReply(f *testing.F) {
	seq, end := binary.BigEndian.AppendUint64(nil, 7), bytes.Repeat([]byte{0xff}, 8)
	for _, c := range captures(f) {
		f.Add([]byte{0, 8}, append(bytes.Clone(seq), c.payloads[0]...))                      // vLLM 0.23.0
		f.Add([]byte{0, 5, 8}, append(append([]byte("kv@\x00e"), seq...), c.payloads[0]...)) // with a topic
	}
	f.Add([]byte{0, 8}, end)
	f.Add([]byte{0, 0, 8}, end)
	f.Add([]byte{0}, []byte("one frame"))
	f.Add([]byte{0, 4}, []byte{0, 0, 0, 1, 2})
	f.Fuzz(func(t *testing.T, sizes, all []byte) {
		var frames [][]byte
		rest := all
		for _, n := range sizes {
			size := min(int(n), len(rest))
			frames, rest = append(frames, rest[:size]), rest[size:]
		}
		frames = append(frames, rest)
		var topic string
		var seq uint64
		var payload []byte
		var err error
		bounded(t, len(all), func() { topic, seq, payload, err = event.ParseReply(frames) })
		n := len(frames)
		if good := n >= 2 && len(frames[n-2]) == 8; good != (err == nil) {
			t.Fatalf("%q: %v", frames, err)
		} else if !good {
			return
		}
		if seq != binary.BigEndian.Uint64(frames[n-2]) || !bytes.Equal(payload, rest) || n < 4 && topic != "" ||
			n >= 4 && (!bytes.HasPrefix(frames[n-3], []byte(topic)) || bytes.IndexByte([]byte(topic), 0) >= 0) {
			t.Fatalf("%q %d %q of %q", topic, seq, payload, frames)
		}
	})
}

func FuzzPull(f *testing.F) {
	for _, p := range pullPages(f) {
		f.Add(p)
	}
	f.Add([]byte("[" + pulledCreated(0, 512, "10") + "," + pulledCreated(1, 4096, "20,5") + "," + pulledStore(2, 512, nil, "1:4") + "," +
		pulledStore(3, 4096, 1, "18446744073709551615:4:1", "2:4", "3:1") + "," + pulledMove(4, 4096, 2, 0, 1) + "," + pulledRemoval(5, 512, "-1,3") + "]"))
	f.Add([]byte(`[{"event_id":0,"attention_dp_rank":1,"data":{"type":"stored","blocks":[{"block_hash":1,"mm_keys":[{"hash":"ab","start_offset":1}],"tokens":[{"token_id":1,"token_extra_id":2}]}]}},null,{}]`))
	f.Fuzz(func(t *testing.T, page []byte) {
		var d event.PullDecoder
		var b event.Batch
		bounded(t, len(page), func() {
			_ = event.ReadPage(bytes.NewReader(page), func(p event.Pulled) {
				if len(p.Body) > len(page) {
					t.Fatalf("an event of %d bytes in a page of %d", len(p.Body), len(page))
				}
				if err := d.Decode(p.Body, &b); err != nil {
					if len(b.Events)+len(b.Skipped) != 0 {
						t.Fatal("an error left events")
					}
					return
				}
				checkBatch(t, &b, len(page))
			})
		})
		// Nor may an event that no page has let through.
		bounded(t, len(page), func() { _ = d.Decode(page, &b) })
	})
}
