package event_test

import (
	"bufio"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/testdata"
)

// TestEngineCaptures decodes all that real engines sent: nothing may be left
// out, and in every store of a full-attention group tokens and hashes align.
func TestEngineCaptures(t *testing.T) {
	for _, c := range captures(t) {
		t.Run(c.name, func(t *testing.T) {
			var d event.Decoder
			var b event.Batch
			kinds, extra := map[event.Kind]int{}, 0
			for i, payload := range c.payloads {
				if err := d.Decode(payload, &b); err != nil {
					t.Fatalf("message %d: %v", i, err)
				}
				if len(b.Skipped) > 0 || b.Trailing > 0 {
					t.Fatalf("message %d: skipped %+v, %d bytes behind", i, b.Skipped, b.Trailing)
				}
				if c.own && (b.Rank < 0 || b.At < 1.7e9) {
					t.Fatalf("message %d: rank %d at %v", i, b.Rank, b.At)
				}
				for j := range b.Events {
					e := &b.Events[j]
					kinds[e.Kind]++
					if e.Kind == event.Stored && e.FullAttention() && e.BlockSize > 0 && !e.Dense() {
						t.Fatalf("message %d event %d: %d hashes of %d tokens, %d ids", i, j, len(e.Hashes), e.BlockSize, len(e.Tokens))
					}
					if len(e.Extra) > 0 {
						extra++
					}
				}
			}
			if c.own && kinds[event.Stored] == 0 {
				t.Fatalf("no stores in %d messages: %v", len(c.payloads), kinds)
			}
			if images := filepath.Base(c.name) == "qwen2-vl"; c.own && images != (extra > 0) {
				t.Errorf("%d events of more than adapters and salts, images were sent: %v", extra, images)
			}
			t.Logf("%d messages: %v", len(c.payloads), kinds)
		})
	}
}

// TestSaltsOfCaptures holds the namespaces decoded from each capture against
// the salts and adapters of the requests that caused it.
func TestSaltsOfCaptures(t *testing.T) {
	for _, c := range testdata.Captures(t) {
		if !c.Own {
			continue // what else was sent there is not known
		}
		t.Run(c.Name, func(t *testing.T) {
			sent, got := map[string]bool{"": true}, map[string]bool{"": true}
			for i := range c.Requests {
				if r := &c.Requests[i]; r.Status == 200 {
					sent[r.Body.Salt] = true
				}
			}
			var d event.Decoder
			var b event.Batch
			visible := false // vLLM before extra_keys says nothing of salts
			for i := range c.Messages {
				if err := d.Decode(c.Messages[i].Payload, &b); err != nil {
					t.Fatal(err)
				}
				for i := range b.Events {
					e := &b.Events[i]
					got[e.Salt] = true
					visible = visible || e.HasSalt
				}
			}
			for s := range got {
				if !sent[s] {
					t.Errorf("salt %q was decoded and never sent", s)
				}
			}
			for s := range sent {
				if visible && !got[s] {
					t.Errorf("salt %q was sent and never decoded", s)
				}
			}
		})
	}
}

type capture struct {
	name     string
	own      bool // one of the project's, whose content is known
	payloads [][]byte
}

func captures(tb testing.TB) (all []capture) {
	tb.Helper()
	for i, root := range testdata.Dirs(tb, "engines") {
		files, err := filepath.Glob(filepath.Join(root, "*", "*", "frames.jsonl"))
		if err != nil {
			tb.Fatal(err)
		}
		for _, file := range files {
			dir := filepath.Dir(file)
			c := capture{name: filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir), own: i == 0}
			for _, m := range testdata.Messages(tb, file) {
				c.payloads = append(c.payloads, m.Payload)
			}
			all = append(all, c)
		}
	}
	for i, root := range testdata.Dirs(tb, "frames") {
		files, err := filepath.Glob(filepath.Join(root, "*.frames.txt"))
		if err != nil {
			tb.Fatal(err)
		}
		for _, file := range files {
			c := capture{name: filepath.Base(file), own: i == 0}
			for _, frames := range frameLines(tb, file) {
				if _, seq, payload, err := event.ParseFrames(frames); err != nil {
					tb.Fatalf("%s: %v", file, err)
				} else if seq != ^uint64(0) { // the end of a replay
					c.payloads = append(c.payloads, payload)
				}
			}
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		tb.Fatal("no captures")
	}
	return all
}

// frameLines reads a *.frames.txt: the last three words of a line are topic,
// sequence and payload in hex, "-" for an empty frame.
func frameLines(tb testing.TB, file string) (messages [][][]byte) {
	tb.Helper()
	for line := range lines(tb, file) {
		words := strings.Fields(string(line))
		if len(words) < 3 || words[0] == "#" {
			continue
		}
		var frames [][]byte
		for _, w := range words[len(words)-3:] {
			frames = append(frames, unhex(tb, strings.TrimPrefix(w, "-")))
		}
		messages = append(messages, frames)
	}
	return messages
}

func lines(tb testing.TB, file string) func(yield func([]byte) bool) {
	tb.Helper()
	f, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	return func(yield func([]byte) bool) {
		s := bufio.NewScanner(f)
		s.Buffer(nil, 64<<20)
		for s.Scan() {
			if len(s.Bytes()) > 0 && !yield(s.Bytes()) {
				return
			}
		}
		if err := s.Err(); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
	}
}

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
