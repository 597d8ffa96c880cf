package tap

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"
	"go.uber.org/goleak"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // terminals show local time
	flag.Parse()
	goleak.VerifyTestMain(m)
}

var (
	at   = time.Date(2026, 11, 29, 11, 42, 7, 318e6, time.UTC).UnixNano()
	podA = &recording.Pod{Name: "vllm-a-3", Addr: "10.4.7.31:5557", Engine: "vllm", Model: "llama", Direction: recording.Dial}
	podB = &recording.Pod{Name: "b", Addr: "10.4.7.32:5557", Engine: "sglang", Model: "org/qwen", Direction: recording.Dial, Rank: 1, Ranks: 2}
)

const (
	colPod   = 1
	colEvent = 4
	colFirst = 8
)

// What real engines sent, as a person and as a program sees it.
func TestCaptures(t *testing.T) {
	for _, name := range []string{"vllm-0.32.0/llama", "vllm-0.23.0/llama", "vllm-0.32.0/gemma3", "vllm-0.32.0/dp2", "vllm-0.32.0/dialin", "sglang-0.5.23/llama"} {
		t.Run(name, func(t *testing.T) {
			path := file(t, capture(t, name))
			flat := strings.ReplaceAll(name, "/", "-")
			for form, c := range map[string]*Command{
				"table": {Format: "table", Count: 12}, "wide": {Format: "wide", Count: 12},
				"jsonl": {Format: "jsonl", Count: 3}, "stats": {Format: "table", Stats: true},
			} {
				c.Source = &File{Paths: []string{path}}
				stdout, stderr, err := shown(t, c, nil)
				if err != nil {
					t.Fatal(err)
				}
				golden(t, flat+"-"+form, stdout)
				if form == "stats" {
					golden(t, flat+"-account", stderr)
				}
			}
		})
	}
}

// UX-07: nothing is wider than the terminal.
func TestTerminal(t *testing.T) {
	for _, width := range []int{60, 100} {
		t.Run(fmt.Sprintf("UX-07 %d", width), func(t *testing.T) {
			s := &out.Streams{OutTTY: true, Width: width}
			stdout, _, err := shown(t, &Command{Source: &File{Paths: []string{file(t, capture(t, "sglang-0.5.23/llama"))}}, Format: "wide", Count: 20}, s)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(stdout) {
				if n := out.Cells(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%d cells: %s", n, line)
				}
			}
			golden(t, fmt.Sprintf("terminal-%d", width), stdout)
		})
	}
}

// TestNarrow: the columns that a terminal has no room for are named, and what a row of
// our own says goes on below.
func TestNarrow(t *testing.T) {
	const why = "dial: the name engine-7.fleet.example.org does not resolve: correct it, or ask from where its DNS is known"
	l := list{message(podA, 1, store(1, 1, 2)), note(podA, recording.Notice{Kind: recording.Down, Why: why}), message(podA, 2, store(2, 1, 2))}
	for _, c := range []struct {
		format, hidden string
		width          int
	}{
		{"table", "FIRST, TOKENS, LAG", 80}, {"wide", "FIRST, TOKENS, LAG, LORA, GROUP, KIND, BLKSZ, SALT, MEDIUM, LAYOUT, TOPIC", 80}, {"table", "", 120},
	} {
		t.Run(fmt.Sprintf("%s %d", c.format, c.width), func(t *testing.T) {
			stdout, stderr, err := shown(t, &Command{Source: l, Format: c.format}, &out.Streams{OutTTY: true, Width: c.width})
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(stdout) {
				if line = strings.TrimSuffix(line, "\n"); out.Cells(line) > c.width || strings.Contains(line, "…") {
					t.Errorf("%q", line)
				}
			}
			if got := strings.Join(strings.Fields(stdout), " "); !strings.Contains(got, why) {
				t.Errorf("%q is not whole in\n%s", why, stdout)
			}
			if said := fmt.Sprintf("%d columns have no room for %s:", c.width, c.hidden); strings.Count(stderr, said) != 1 && c.hidden != "" || strings.Contains(stderr, "no room") != (c.hidden != "") {
				t.Errorf("want %q once in\n%s", said, stderr)
			}
		})
	}
}

// TestUnknownKind: an event of a kind that nobody knows is told by its name, where it
// stands, and is no fault.
func TestUnknownKind(t *testing.T) {
	m := message(podA, 7, store(1, 1, 2), testEvent{kind: "BlockPinned"}, store(2, 1, 2))
	stdout, stderr, err := shown(t, &Command{Source: list{m}, Format: "table", NoHeaders: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for line := range strings.Lines(stdout) {
		kinds = append(kinds, strings.Fields(line)[4])
	}
	if !slices.Equal(kinds, []string{"stored", "UNKNOWN", "stored"}) || !strings.Contains(stdout, "BlockPinned: no event that eppctl knows") {
		t.Errorf("rows %q in\n%s", kinds, stdout)
	}
	if !strings.Contains(stderr, "1 event of unknown kinds") || strings.Contains(stderr, "not read") || strings.Contains(stderr, "first:") {
		t.Errorf("account\n%s", stderr)
	}
	stdout, stderr, _ = shown(t, &Command{Source: list{m}, Format: "jsonl"}, nil)
	if !strings.Contains(stdout, `"notice":"unknown"`) || !strings.Contains(stdout, `"field":"BlockPinned"`) ||
		!strings.Contains(stderr, `"skipped_events":1,"unknown_events":1,"first_undecodable":null`) {
		t.Errorf("%s%s", stdout, stderr)
	}
}

// Rows of our own: what happened, where it happened.
func TestNotices(t *testing.T) {
	l := list{
		note(podA, recording.Notice{Kind: recording.Up, Why: "ZMTP 3.1"}),
		message(podA, 1, store(1, 1, 2)),
		message(podA, 2, store(2, 1, 2)),
		note(podA, recording.Notice{Kind: recording.Gap, FromSeq: number(3), ToSeq: number(4), Count: 2}),
		{Type: recording.TypeReplay, At: at, Pod: podA, Parts: append([][]byte{{}}, message(podA, 3, store(3, 1, 2)).Parts[1:]...)},
		{Type: recording.TypeReplay, At: at, Pod: podA, Parts: append([][]byte{{}}, message(podA, 4, store(4, 1, 2)).Parts...)},
		note(podA, recording.Notice{Kind: recording.Replay, FromSeq: number(3), ToSeq: number(4), Count: 2, Outcome: "filled", TookMs: 9}),
		message(podA, 5, store(5, 1, 2)),
		note(podA, recording.Notice{Kind: recording.Restart, Why: "numbers went back: a new publisher", Purged: true}),
		message(podA, 0, testEvent{kind: "AllBlocksCleared"}),
		raw(podB, []byte("x")),
		raw(podB, []byte("x"), []byte("y")),
		raw(podB, nil, []byte{0, 0, 0, 1}, []byte{0x90}),
		raw(podB, nil, nil, nil, nil),
		raw(podB, nil, make([]byte, 8), []byte("no msgpack")),
		cut(message(podB, 0, store(6, 1, 2), store(7, 1, 2)), 12),
		message(podB, 1, testEvent{kind: "BlockRemoved"}, store(6, 1, 2)),
		note(podB, recording.Notice{Kind: recording.Partial, Why: "the missing batches cannot be had", Purged: true}),
		note(nil, recording.Notice{Kind: recording.Dropped, Count: 12, Why: "the reader did not keep up"}),
		note(podA, recording.Notice{Kind: recording.Down, Why: "eof: EOF"}),
	}
	// One event of which the hash is no hash.
	bad := msgp.AppendArrayHeader(msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 2), 1), 1)
	bad = msgp.AppendString(msgp.AppendMapHeader(bad, 2), "type")
	bad = msgp.AppendString(bad, "BlockRemoved")
	bad = msgp.AppendBool(msgp.AppendArrayHeader(msgp.AppendString(bad, "block_hashes"), 1), true)
	l = append(l, raw(podB, nil, binary.BigEndian.AppendUint64(nil, 9), bad))

	for _, form := range []string{"table", "jsonl"} {
		t.Run("TAP-01 TAP-02 TAP-03 TAP-04 "+form, func(t *testing.T) {
			stdout, stderr, err := shown(t, &Command{Source: &File{Paths: []string{file(t, l)}}, Format: form}, nil)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "notices-"+form, stdout)
			golden(t, "notices-account-"+form, stderr)
		})
	}
	t.Run("raw", func(t *testing.T) {
		stdout, _, err := shown(t, &Command{Source: l[10:], Format: "table", Raw: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "notices-raw", stdout)
	})
}

// UX-08: names from the wire reach no terminal as they are, and JSON unchanged.
func TestNamesFromTheWire(t *testing.T) {
	evil := &recording.Pod{Name: "a\x1b[2Jb", Addr: "h:1", Model: "x\r\ny"}
	l := list{
		note(evil, recording.Notice{Kind: recording.Down, Why: "peer said \x1b]0;x\x07"}),
		raw(evil, []byte("kv@\x1b[31m@x"), make([]byte, 8), message(evil, 0, testEvent{kind: "BlockStored", hashes: []uint64{1}, tokens: []uint32{1}, lora: "l\x1b[1m"}).Parts[2]),
		raw(evil, []byte("\x1b[5m")),
	}
	for _, c := range []*Command{{Format: "wide", Raw: true}, {Format: "table", Stats: true}} {
		c.Source = l
		stdout, stderr, err := shown(t, c, &out.Streams{OutTTY: true, Width: 400})
		if err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexAny(stdout+stderr, "\x1b\r\x07"); i >= 0 {
			t.Errorf("UX-08: a control character reaches the terminal: %q", (stdout + stderr)[i:])
		}
		if !strings.Contains(stdout, `a\x1b[2Jb`) {
			t.Errorf("UX-08: no escaped name in %s", stdout)
		}
	}
	stdout, _, err := shown(t, &Command{Source: l, Format: "jsonl"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var e Event
	if err := json.Unmarshal([]byte(strings.Split(stdout, "\n")[1]), &e); err != nil || e.Pod != evil.Name || *e.LoRA != "l\x1b[1m" || *e.Model != "x\r\ny" {
		t.Errorf("UX-08: %v %+v", err, e)
	}
}

// Hashes are strings, token ids stay away unless asked for.
func TestJSON(t *testing.T) {
	l := list{message(podA, 7, store(0xFEDCBA9876543210, 4242, 4343))}
	stdout, _, err := shown(t, &Command{Source: l, Format: "jsonl"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stdout, `"hashes":["fedcba9876543210"]`) {
		t.Errorf("UX-23: %s", stdout)
	}
	if strings.Contains(stdout, "4242") {
		t.Errorf("token ids unasked: %s", stdout)
	}
	if stdout, _, _ = shown(t, &Command{Source: l, Format: "jsonl", ShowTokens: true}, nil); !strings.Contains(stdout, `"token_ids":[4242,4343]`) {
		t.Errorf("no token ids: %s", stdout)
	}
	for _, form := range []string{"table", "wide"} {
		if stdout, _, _ = shown(t, &Command{Source: l, Format: form}, nil); strings.Contains(stdout, "4242") {
			t.Errorf("token ids in a table: %s", stdout)
		}
	}
	t.Run("json is one list", func(t *testing.T) {
		for n := range 3 {
			stdout, _, err := shown(t, &Command{Source: list(slices.Repeat(l, n)), Format: "json"}, nil)
			var all []Event
			if err2 := json.Unmarshal([]byte(stdout), &all); err != nil || err2 != nil || len(all) != n {
				t.Errorf("%v %v: %s", err, err2, stdout)
			}
		}
	})
	t.Run("yaml is a stream of documents", func(t *testing.T) {
		stdout, _, _ := shown(t, &Command{Source: append(l, l...), Format: "yaml"}, nil)
		if strings.Count(stdout, "---\n") != 2 || !strings.Contains(stdout, "kind: Event\n") {
			t.Error(stdout)
		}
	})
}

// UX-09
func TestStreamIsNoDocument(t *testing.T) {
	for _, form := range []string{"json", "yaml"} {
		err := (&Command{Source: &Engines{}, Format: form}).Check()
		var own *inspect.Error
		if !errors.As(err, &own) || own.Kind != inspect.Usage || !strings.Contains(own.Hint, "jsonl") {
			t.Errorf("UX-09: -o %s: %v", form, err)
		}
		for _, c := range []*Command{{Count: 1, Source: &Engines{}}, {Duration: 1, Source: &Engines{}}, {Source: &File{}}, {Stats: true, Source: &Engines{}}} {
			c.Format = form
			if err := c.Check(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := (&Command{Source: &Engines{}, Format: "jsonl"}).Check(); err != nil {
		t.Error(err)
	}
}

// TAP-10: a lag that is none is marked, and left out of the quantiles.
func TestSkewedClocks(t *testing.T) {
	now := float64(at) / 1e9
	l := list{stamped(podA, 1, now+3, store(1, 1)), stamped(podA, 2, now-0.002, store(1, 1)), stamped(podA, 3, now-5, store(1, 1))}
	stdout, stderr, err := shown(t, &Command{Source: l, Format: "table"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := columnOf(stdout, 10); got[0] != "-3.0s!" || got[2] != "5.0s!" || strings.Contains(got[1], "!") {
		t.Errorf("TAP-10: lags %v", got)
	}
	if !strings.Contains(stderr, "lag p50 2.0ms p99 2.0ms max 2.0ms; 2 batches with a clock that differs") {
		t.Errorf("TAP-10: %s", stderr)
	}
}

// Tallies are of the publishers that are asked for.
func TestStatsOfPods(t *testing.T) {
	c := &Command{Source: list{message(podA, 1, store(1, 1)), message(podB, 1, store(1, 1))}, Format: "json", Stats: true}
	if err := c.Filter.Add("pod", "b", false); err != nil {
		t.Fatal(err)
	}
	if err := c.Filter.Add("event", "removed", false); err != nil {
		t.Fatal(err)
	}
	stdout, _, err := shown(t, c, nil)
	var s Stats
	if err2 := json.Unmarshal([]byte(stdout), &s); err != nil || err2 != nil || len(s.Pods) != 1 || s.Pods[0].Pod != "b" || s.Pods[0].Events != 1 {
		t.Errorf("%v %v %s", err, err2, stdout)
	}
}

// A consumer sees everything, whatever is filtered.
func TestConsumers(t *testing.T) {
	c := &Command{Source: capture(t, "vllm-0.32.0/llama"), Quiet: true}
	if err := c.Filter.Add("pod", "nobody", false); err != nil {
		t.Fatal(err)
	}
	stats := newStats()
	c.Consumers = []Consumer{stats}
	if _, _, err := shown(t, c, nil); err != nil {
		t.Fatal(err)
	}
	if stats.Pods[0].Batches != uint64(len(capture(t, "vllm-0.32.0/llama"))-1) {
		t.Errorf("%d batches", stats.Pods[0].Batches)
	}
}

// What is connected is what is so now.
func TestConnectedNow(t *testing.T) {
	up, down := recording.Notice{Kind: recording.Up}, recording.Notice{Kind: recording.Down, Why: "eof"}
	first := &recording.Pod{Name: "b", Ranks: 2}
	for _, c := range []struct {
		l    list
		want string
	}{
		{list{note(podA, up), note(podB, up)}, "2 of 2 pods connected,"},
		{list{note(podA, up), note(podB, up), note(podA, down)}, "1 of 2 pods connected (2 before),"},
		{list{note(podA, up), note(podA, down), note(podA, up)}, "1 of 1 pod connected,"},
		{list{note(first, up), note(podB, up), note(podB, down)}, "1 of 1 pod connected,"}, // one rank of two
		{list{note(podA, down)}, "0 of 1 pod connected,"},
	} {
		_, stderr, err := shown(t, &Command{Source: &File{Paths: []string{file(t, c.l)}}}, nil)
		if err != nil || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: %s; want %s", err, stderr, c.want)
		}
	}
}

// A replay that failed says that and nothing else.
func TestReplayText(t *testing.T) {
	for _, c := range []struct {
		n    recording.Notice
		want string
	}{
		{recording.Notice{Outcome: "failed", TookMs: 328, Why: "no answer"}, "failed in 328ms: no answer"},
		{recording.Notice{Outcome: "filled", TookMs: 5}, "there was nothing to recover in 5ms"},
		{recording.Notice{Outcome: "filled", TookMs: 5, FromSeq: number(3), ToSeq: number(4), Count: 2}, "recovered seq 3..4 in 5ms"},
		{recording.Notice{Outcome: "aborted", TookMs: 5, FromSeq: number(3), ToSeq: number(4), Count: 2, Why: "another engine"}, "recovered seq 3..4 in 5ms, then aborted: another engine"},
	} {
		c.n.Kind = recording.Replay
		if got := noticeOf(&Entry{Record: note(podA, c.n)}, 0).text(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
