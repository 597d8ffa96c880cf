package tap

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/testdata"
)

// FuzzShow: whatever a publisher sends, every form shows it without a panic,
// without a control character on a terminal, and as JSON where it says so.
func FuzzShow(f *testing.F) {
	for _, r := range capture(f, "vllm-0.32.0/gemma3")[1:4] {
		f.Add(r.Parts[0], r.Parts[1], r.Parts[2], "1,2,3", uint8(3))
	}
	f.Add([]byte("\x1b[2J"), []byte{1, 2, 3, 4}, []byte{0x93}, "", uint8(3))
	f.Add([]byte("kv@a@b"), make([]byte, 8), message(podA, 0, store(1, 1, 2)).Parts[2], "1", uint8(4))
	f.Add([]byte("trtllm-pull"), make([]byte, 8), []byte(`{"event_id":1,"data":{"type":"removed","block_hashes":[18]}}`), "", uint8(3))
	f.Fuzz(func(t *testing.T, a, b, c []byte, tokens string, n uint8) {
		parts := [][]byte{a, b, c, a, b, c}[:n%7]
		l := list{
			raw(podA, parts...), {Type: recording.TypeReplay, At: at, Pod: podB, Parts: parts},
			note(podA, recording.Notice{Kind: string(a), Why: string(b), Outcome: string(c), Purged: n%2 == 0}),
			note(nil, recording.Notice{Kind: recording.Gap}), note(nil, recording.Notice{Kind: recording.Replay}),
		}
		for _, form := range []string{"wide", "jsonl", "yaml"} {
			c := &Command{Source: l, Format: form, Raw: true, Consumers: []Consumer{newStats()}}
			_ = c.Filter.Add("token-ids", tokens, true)
			var stdout, stderr testdata.Buffer
			s := &out.Streams{Out: &stdout, Err: &stderr, OutTTY: form == "wide", Width: 200}
			if err := c.Run(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(stdout.String()) {
				line = strings.TrimSuffix(line, "\n")
				if form == "wide" && strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
					t.Errorf("control character in %q", line)
				}
				if form == "jsonl" && !json.Valid([]byte(line)) {
					t.Errorf("no JSON: %q", line)
				}
			}
		}
	})
}
