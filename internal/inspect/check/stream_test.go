package check

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/testdata"
)

// Short names for the writing of events.
type obj = testdata.Obj

var batch, stored = testdata.Batch, testdata.Stored

func message(topic string, seq uint64, payload []byte) [][]byte {
	return [][]byte{[]byte(topic), binary.BigEndian.AppendUint64(nil, seq), payload}
}

// listen gives the stream live messages numbered from 0, as prompt as their stamps.
func (s *stream) listen(payloads ...[]byte) {
	for i, p := range payloads {
		s.live(message("", uint64(i), p), 1.7e9)
	}
}

func (s *stream) live(parts [][]byte, seconds float64) {
	s.Record(&recording.Record{Type: recording.TypeFrame, At: int64(seconds * 1e9), Parts: parts})
}

func (s *stream) notify(n recording.Notice) {
	s.Record(&recording.Record{Type: recording.TypeNotice, Notice: n})
}

// list is the findings as "severity code".
func list(findings []feed.Finding) (words []string) {
	for _, f := range findings {
		words = append(words, string(f.Severity)+" "+f.Code)
	}
	return words
}

// TestStreamOfRealEngines: nothing is wrong with what real engines sent; a hybrid
// model is told of, and that is all.
func TestStreamOfRealEngines(t *testing.T) {
	sizes := map[string]int{"vllm-0.32.0/dialin": 64, "sglang-0.5.23/llama": 16}
	for _, c := range testdata.Captures(t) {
		if !c.Own {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			streams := make([]*stream, c.Ranks)
			for i := range streams {
				streams[i] = newStream(pod.Spec{Name: "p", Address: "127.0.0.1:8100", Model: "tiny", Ranks: c.Ranks}, i)
			}
			var d event.Decoder
			var b event.Batch
			for _, m := range c.Messages {
				if err := d.Decode(m.Payload, &b); err != nil {
					t.Fatal(err)
				}
				streams[m.Rank].live(message("kv@127.0.0.1:8100@tiny", m.Seq, m.Payload), b.At)
			}
			want, size := []string(nil), sizes[c.Name]
			if strings.HasSuffix(c.Name, "gemma3") {
				want = []string{"info hybrid-groups"}
			}
			if size == 0 {
				size = 32
			}
			for i, s := range streams {
				got := s.Findings(witness{BlockSize: size, Computed: 1, Fleet: []pod.Spec{s.Pod}})
				if !slices.Equal(list(got), want) {
					t.Errorf("rank %d: %v", i, got)
				}
				if f := s.Fact(witness{}); !f.OK || !strings.Contains(f.Detail, fmt.Sprintf("blocks of %d,", size)) {
					t.Errorf("%v", f)
				}
			}
		})
	}
}

// TestStreamIsBounded: a stream that only ever stores is heard for as long as one
// likes.
func TestStreamIsBounded(t *testing.T) {
	s := newStream(pod.Spec{Name: "p"}, 0)
	const blocks = 256
	for i := range 3 * maxBlocks / blocks {
		hashes, tokens := make([]any, blocks), make([]any, blocks)
		for k := range hashes {
			hashes[k], tokens[k] = uint64(i*blocks+k+1), i*blocks+k
		}
		s.live(message("", uint64(i), batch(t, nil, stored(0, nil, 1, "block_hashes", hashes, "token_ids", tokens))), 1.7e9+float64(i))
	}
	if n := s.content.ix.Stats().Blocks; n > maxBlocks+2*sweepEvery {
		t.Errorf("%d blocks are kept, at most %d", n, maxBlocks)
	}
	if got := s.Findings(witness{}); len(got) > 1 || len(got) == 1 && got[0].Code != "events-late" {
		t.Errorf("findings %v", got)
	}
}

// TestBlind: each thing that blinds or misleads the picker, and nothing beside it.
func TestBlind(t *testing.T) {
	const h = uint64(1) << 60
	spec := pod.Spec{Name: "a", Address: "10.0.0.1:8000", Ranks: 1, Events: []string{"tcp://10.0.0.1:5557"}}
	fleet := []pod.Spec{spec, {Name: "b", Address: "10.0.0.2:8000"}, {Name: "c", Address: "10.0.0.1:8001"}}
	good := batch(t, 0, stored(h, nil, 16))
	bytes32 := make([]byte, 32)
	bytes32[31] = 9
	for _, c := range []struct {
		name string
		spec pod.Spec
		play func(s *stream)
		w    witness
		want []string
		say  string // in the first of them
	}{
		{name: "clean", play: func(s *stream) { s.listen(good, batch(t, 0, stored(h+1, h, 16))) }, w: witness{BlockSize: 16, Computed: 100}},
		{name: "lost at the end", play: func(s *stream) {
			s.notify(recording.Notice{Kind: recording.Up})
			s.listen(good)
			s.notify(recording.Notice{Kind: recording.Down, Why: "eof"})
		}, want: []string{"warning disconnected"}, say: "not made again: eof"},
		{name: "lost, and a probe says why", play: func(s *stream) {
			s.notify(recording.Notice{Kind: recording.Up})
			s.notify(recording.Notice{Kind: recording.Down, Why: "eof"})
		}, w: witness{portFaulty: true}},
		{name: "never connected, and the port answers now", play: func(s *stream) { s.notify(recording.Notice{Kind: recording.Down, Why: "refused"}) },
			w: witness{portWell: true}, want: []string{"info disconnected"}, say: "run this again"},
		{name: "idle, of which serve has had events", play: func(s *stream) { s.notify(recording.Notice{Kind: recording.Up}) },
			w:    witness{Lasted: 2 * time.Second, Before: &Before{Any: true, Last: 22, Age: 40 * time.Second, State: "live"}},
			want: []string{"info no-events-ever"}, say: "none came in 2.0 s; serve has batches up to number 22, the last 40.0 s ago (live)"},
		{name: "idle, and serve has had none", play: func(s *stream) { s.notify(recording.Notice{Kind: recording.Up}) },
			w:    witness{Lasted: 2 * time.Second, Before: &Before{State: "stale", Why: "no-events-ever"}},
			want: []string{"info no-events-ever"}, say: "serve has had none before (stale, no-events-ever)"},
		{name: "idle, of a recording", play: func(s *stream) { s.notify(recording.Notice{Kind: recording.Up}) },
			w: witness{Past: true}, want: []string{"info no-events-ever"}, say: "in the recording"},
		{name: "idle", play: func(s *stream) { s.notify(recording.Notice{Kind: recording.Up}) }, want: []string{"info no-events-ever"}, say: "send one"},
		{name: "silent though requests run", play: func(s *stream) { s.notify(recording.Notice{Kind: recording.Up}) },
			w: witness{Computed: 4711}, want: []string{"warning connected-silent"}, say: "4711 prompt tokens"},
		{name: "cache off", play: func(*stream) {}, w: witness{Computed: 5, CacheOff: true}, want: []string{"warning prefix-cache-off"}},
		{name: "no connection", play: func(s *stream) { s.notify(recording.Notice{Kind: recording.Down, Why: "dial: refused"}) },
			w: witness{Computed: 5}, want: []string{"warning disconnected"}, say: "dial: refused"},

		{name: "EX-10: 16 configured, events of 64", spec: pod.Spec{BlockSize: 16}, play: func(s *stream) { s.listen(batch(t, 0, stored(h, nil, 64))) },
			want: []string{"warning block-size-mismatch"}, say: `block_size is "16", the engine says "64"`},
		{name: "the engine's page says 16", w: witness{BlockSize: 16}, play: func(s *stream) { s.listen(batch(t, 0, stored(h, nil, 64))) },
			want: []string{"warning block-size-mismatch"}, say: "another engine's"},
		{name: "two sizes", play: func(s *stream) {
			s.listen(batch(t, 0, stored(h, nil, 16), stored(h+1, h, 16), stored(h+2, h+1, 24)))
		}, want: []string{"warning block-size-mismatch"}, say: "16: 2, 24: 1"},

		{name: "byte strings", play: func(s *stream) { s.listen(batch(t, 0, stored(bytes32, nil, 16))) }},
		{name: "two forms", play: func(s *stream) { s.listen(batch(t, 0, stored(h, nil, 16), stored(bytes32, nil, 16))) },
			want: []string{"warning hash-form"}, say: "byte strings: 1, numbers: 1"},
		{name: "no hashes", play: func(s *stream) { s.listen(batch(t, 0, stored("abc", nil, 16))) }, want: []string{"warning hash-form"}},

		{name: "topic of b", play: func(s *stream) { s.live(message("kv@b@model", 0, good), 1.7e9) }, want: []string{"error topic-mismatch"}, say: "pod b"},
		{name: "topic with b's address", play: func(s *stream) { s.live(message("kv@10.0.0.2:8000@x/y@z", 0, good), 1.7e9) }, want: []string{"error topic-mismatch"}},
		{name: "topic of the host alone", play: func(s *stream) { s.live(message("kv@10.0.0.1@model", 0, good), 1.7e9) }},
		{name: "topic of a name nobody has", play: func(s *stream) { s.live(message("kv@vllm-7f9c@model", 0, good), 1.7e9) }},
		{name: "topic of c, on the same host", play: func(s *stream) { s.live(message("kv@10.0.0.1:8001@model", 0, good), 1.7e9) }, want: []string{"error topic-mismatch"}},

		{name: "no token ids", play: func(s *stream) {
			s.listen(batch(t, 0, stored(h, nil, 0, "token_ids", nil), stored(h+1, h, 0, "token_ids", []any{})))
		}, want: []string{"warning no-token-ids"}, say: "2 stores"},
		{name: "tokens as text", play: func(s *stream) { s.listen(batch(t, 0, stored(h, nil, 2, "token_ids", []any{"a", "b"}))) },
			want: []string{"warning no-token-ids"}, say: "as text"},
		{name: "placeholders of a slower tier", play: func(s *stream) {
			s.listen(batch(t, 0, stored(h, nil, 16), stored(h, nil, 0, "token_ids", []any{}, "medium", "CPU")))
		}},
		{name: "misaligned", play: func(s *stream) {
			s.listen(batch(t, 0, stored(h, nil, 16), stored(h+1, h, 16, "block_hashes", []any{h + 1, h + 2})))
		},
			want: []string{"warning tokens-misaligned"}, say: "1 store passed over, the first in batch 0 (16 tokens for 2 blocks of 16)"},
		{name: "adapter without a name", play: func(s *stream) { s.listen(batch(t, 0, stored(h, nil, 16, "lora_id", 3))) }, want: []string{"warning adapter-unnamed"}},
		{name: "adapter with a name", play: func(s *stream) { s.listen(batch(t, 0, stored(h, nil, 16, "lora_id", 3, "lora_name", "sql"))) }},

		{name: "sliding window beside full attention", play: func(s *stream) {
			s.listen(batch(t, 0, stored(h, nil, 16, "group_idx", 0, "kv_cache_spec_kind", "sliding_window", "kv_cache_spec_sliding_window", 32),
				stored(h, nil, 16, "group_idx", 1, "kv_cache_spec_kind", "full_attention")))
		}, w: witness{BlockSize: 64}, want: []string{"info hybrid-groups"}, say: "sliding_window of 32"},
		{name: "sliding window alone", play: func(s *stream) {
			s.listen(batch(t, 0, stored(h, nil, 16, "group_idx", 0, "kv_cache_spec_kind", "sliding_window", "kv_cache_spec_sliding_window", 32)))
		}, want: []string{"warning hybrid-groups"}, say: "no group holds whole prompts"},
		{name: "mamba beside full attention", play: func(s *stream) {
			s.listen(batch(t, 0, stored(h, nil, 16, "group_idx", 0), stored(h, nil, 16, "group_idx", 1, "kv_cache_spec_kind", "mamba")))
		}, want: []string{"warning hybrid-groups"}, say: "mamba (not followed)"},

		{name: "two frames", play: func(s *stream) { s.live([][]byte{[]byte("kv"), good}, 1.7e9) }, want: []string{"warning wrong-framing"}, say: "2 frames"},
		{name: "a short sequence", play: func(s *stream) { s.live([][]byte{nil, {0, 1, 2, 3}, good}, 1.7e9) }, want: []string{"warning wrong-framing"}, say: "4 bytes"},
		{name: "no batch", play: func(s *stream) { s.listen([]byte(`{"json":1}`)) }, want: []string{"warning events-undecodable"}, say: "batch 0"},
		{name: "an event without its hashes", play: func(s *stream) { s.listen(batch(t, 0, obj{"type", "BlockRemoved"})) }, want: []string{"warning events-skipped"}, say: "no-hashes"},
		{name: "an event of another kind", play: func(s *stream) { s.listen(good, batch(t, 0, obj{"type", "BlockPinned"}, obj{"type", "Other\x1b"})) },
			want: []string{"info events-skipped"}, say: `2 events of kinds that eppctl does not know and passes over: BlockPinned: 1, Other\x1b: 1`},
		{name: "another rank", play: func(s *stream) { s.listen(batch(t, 3, stored(h, nil, 16))) }, want: []string{"warning rank-mismatch"}, say: "rank 3"},
		{name: "no rank said", play: func(s *stream) { s.listen(batch(t, nil, stored(h, nil, 16))) }},
		{name: "an unknown medium", play: func(s *stream) { s.listen(good, batch(t, 0, stored(h, nil, 16, "medium", "TAPE"))) }, want: []string{"info medium-unknown"}, say: "TAPE"},

		{name: "a gap", play: func(s *stream) {
			for _, seq := range []uint64{4, 5, 9} {
				s.live(message("", seq, batch(t, 0, stored(h+seq, nil, 16))), 1.7e9)
			}
		}, want: []string{"warning events-lost"}, say: "3 batches missing in 1 gap"},
		{name: "a reconnect", play: func(s *stream) {
			s.live(message("", 4, good), 1.7e9)
			s.notify(recording.Notice{Kind: recording.Down, Why: "eof"})
			s.notify(recording.Notice{Kind: recording.Up})
			s.live(message("", 9, batch(t, 0, stored(h+1, nil, 16))), 1.7e9)
		}},
		{name: "a restart", play: func(s *stream) {
			s.live(message("", 4, good), 1.7e9)
			s.live(message("", 0, good), 1.7e9)
		}},
		{name: "late ones", play: func(s *stream) {
			s.live(message("", 4, good), 1.7e9)
			s.live(message("", 5, batch(t, 0, stored(h+1, nil, 16))), 1.7e9+9)
		}, want: []string{"warning events-late"}, say: "9.0 s"},
		{name: "another clock", play: func(s *stream) { s.live(message("", 4, good), 1.7e9+3600) }},
		{name: "orphans from the begin", play: func(s *stream) { s.listen(good, batch(t, 0, stored(h+7, h+6, 16))) }, want: []string{"warning orphan-parent"}, say: "1 store of blocks"},
		{name: "orphans of a late comer", play: func(s *stream) { s.live(message("", 500, batch(t, 0, stored(h+7, h+6, 16))), 1.7e9) }},

		{name: "history by replay", play: func(s *stream) {
			s.replays(message("", 0, good), [][]byte{nil, binary.BigEndian.AppendUint64(nil, 1), batch(t, 0, stored(h+1, h, 16))})
			s.live(message("", 2, batch(t, 0, stored(h+2, h+1, 16))), 1.7e9)
		}},
		{name: "another engine's replay", play: func(s *stream) {
			s.live(message("", 7, good), 1.7e9)
			s.replays(message("", 7, batch(t, 0, stored(h+5, nil, 16))))
		}, want: []string{"error replay-mismatch"}, say: "1 replayed batch"},
		{name: "a replay that ends too early", play: func(s *stream) {
			s.replays(message("", 0, good))
			s.notify(recording.Notice{Kind: recording.Replay, Count: 1, Outcome: "failed", Why: "batch 1 is not in the replay"})
			s.live(message("", 90, batch(t, 0, stored(h+2, nil, 16))), 1.7e9)
		}, want: []string{"warning replay-mismatch"}, say: "batch 1 is not in the replay"},
		{name: "no replay", play: func(s *stream) {
			s.notify(recording.Notice{Kind: recording.Replay, Outcome: "failed", Why: "no answer"})
			s.live(message("", 90, good), 1.7e9)
		}, want: []string{"warning replay-dead"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := spec
			own.BlockSize = c.spec.BlockSize
			s := newStream(own, 0)
			c.w.Fleet = fleet
			c.play(s)
			got := s.Findings(c.w)
			if !slices.Equal(list(got), c.want) {
				t.Fatalf("findings %v, want %q", got, c.want)
			}
			if len(got) > 0 && (got[0].Pod != "a" || !strings.Contains(got[0].String(), c.say)) {
				t.Errorf("%s, want %q in it", got[0], c.say)
			}
		})
	}
}

// TestStreamFact: what came is good, nothing is neither good nor bad, and what cannot
// be read is bad.
func TestStreamFact(t *testing.T) {
	good := batch(t, 0, stored(uint64(1)<<60, nil, 16))
	for _, c := range []struct {
		name    string
		play    func(s *stream)
		ok      bool
		skipped bool
		code    string
		say     string
	}{
		{"events", func(s *stream) { s.listen(good) }, true, false, "", "1 message live, stored 1"},
		{"nothing", func(*stream) {}, false, true, "", "nothing came in 10.0 s"},
		{"nothing, and no connection", func(s *stream) { s.notify(recording.Notice{Kind: recording.Down}) }, false, true, "", "not connected at the end"},
		{"no batch", func(s *stream) { s.listen([]byte("[1]"), []byte("[2]")) }, false, false, "events-undecodable", "2 messages live"},
		{"one of them", func(s *stream) { s.listen([]byte("[1]"), good) }, true, false, "", "2 messages live"},
		{"two frames", func(s *stream) { s.live([][]byte{nil, good}, 1.7e9) }, false, false, "wrong-framing", ""},
		{"a replay alone", func(s *stream) { s.replays(message("", 0, good)) }, true, false, "", "1 replayed from number 0"},
		{"late", func(s *stream) {
			s.Record(&recording.Record{Type: recording.TypeNotice, At: 3.5e9, Notice: recording.Notice{Kind: recording.Up}})
			s.listen(good)
		}, true, false, "", "connected after 2.5 s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStream(pod.Spec{Name: "a"}, 0)
			c.play(s)
			f := s.Fact(witness{From: 1e9, Lasted: 10 * time.Second})
			if f.OK != c.ok || f.Skipped != c.skipped || f.Code != c.code || !strings.Contains(f.Detail, c.say) {
				t.Errorf("%+v, want %q in it", f, c.say)
			}
		})
	}
}

// TestTopicOfEndpoint: a recording of an endpoint, held against a configuration that
// calls it by another name, mixes nothing up.
func TestTopicOfEndpoint(t *testing.T) {
	s := newStream(pod.Spec{Name: "10.0.0.2:5557"}, 0)
	s.live(message("kv@b@model", 0, batch(t, 0, stored(uint64(1)<<60, nil, 16))), 1.7e9)
	if got := s.Findings(witness{Fleet: []pod.Spec{{Name: "b", Address: "10.0.0.2:8000"}}}); len(got) > 0 {
		t.Errorf("findings %v", got)
	}
}

func (s *stream) replays(messages ...[][]byte) {
	for _, parts := range messages {
		s.Record(&recording.Record{Type: recording.TypeReplay, Parts: parts})
	}
}
