package tap

import (
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
	"github.com/eppctl/eppctl/internal/testdata"
)

// TAP-04: --replay=SEQ asks from there on, and -e ends the tap when the replays of
// all streams have ended, without a live batch.
func TestReplayFromAndEnd(t *testing.T) {
	var of []feed.Publisher
	for range 2 {
		p := publisher(t)
		rep, err := zmtp.ListenReplay("127.0.0.1:0", zmtp.ReplayOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rep.Close() })
		for i := range uint64(10) {
			rep.Record(i, "", payload(i+1))
		}
		of = append(of, feed.Publisher{Endpoint: p.Addr(), Replay: rep.Addr()})
	}
	for _, c := range []struct {
		from, first uint64
		count       int
	}{{0, 0, 20}, {6, 6, 8}} {
		l := &live{t: t, stdout: &testdata.Buffer{}}
		cmd := &Command{Format: "jsonl", End: true, Wanted: 2, Source: &Engines{Replay: true, ReplayFrom: c.from, Publishers: of}}
		if err := cmd.Run(t.Context(), &out.Streams{Out: l.stdout, Err: &l.stderr}); err != nil {
			t.Fatal(err)
		}
		got := l.events()
		if len(got) != c.count || !got[0].Replayed || got[0].Seq != c.first {
			t.Errorf("from %d: %d events, want %d: %s", c.from, len(got), c.count, l.stdout)
		}
		if strings.Count(l.stdout.String(), `"outcome":"filled"`) != 2 {
			t.Errorf("from %d: %s", c.from, l.stdout)
		}
	}
}

// O-07: the wire's number of an adapter is shown, beside its name or alone.
func TestAdapterNumber(t *testing.T) {
	path := file(t, list{
		message(podA, 1, testEvent{kind: "BlockStored", hashes: []uint64{1}, tokens: []uint32{1}, lora: "sql", loraID: 7}),
		message(podA, 2, testEvent{kind: "BlockStored", hashes: []uint64{2}, tokens: []uint32{1}, loraID: 8}),
		message(podA, 3, testEvent{kind: "BlockStored", hashes: []uint64{3}, tokens: []uint32{1}, lora: "sql"}),
	})
	for form, want := range map[string][]string{
		"jsonl": {`"lora":"sql","lora_id":7,`, `"lora":null,"lora_id":8,`, `"lora":"sql","lora_id":null,`},
		"wide":  {"sql #7 ", " #8 ", " sql "},
	} {
		stdout, _, err := shown(t, &Command{Source: &File{Paths: []string{path}}, Format: form, NoHeaders: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(stdout, "\n")
		for i, text := range want {
			if !strings.Contains(lines[i], text) {
				t.Errorf("-o %s: %q is not in %s", form, text, lines[i])
			}
		}
	}
}
