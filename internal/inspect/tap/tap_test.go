package tap

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"
	"go.uber.org/goleak"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/recorder"
	"github.com/eppctl/eppctl/internal/testdata"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // terminals show local time
	flag.Parse()
	goleak.VerifyTestMain(m)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	testdata.Golden(t, filepath.Join("testdata", name+".golden"), []byte(got))
}

// list is a source of given records.
type list []*recording.Record

func (l list) String() string { return "list" }
func (l list) Run(_ context.Context, emit func([]*recording.Record) error) error {
	return emit(l)
}

// shown runs a command and returns what it wrote.
func shown(t *testing.T, c *Command, s *out.Streams) (stdout, stderr string, err error) {
	t.Helper()
	var o, e testdata.Buffer
	if s == nil {
		s = &out.Streams{}
	}
	s.Out, s.Err = &o, &e
	err = c.Run(t.Context(), s)
	return o.String(), e.String(), err
}

var (
	at   = time.Date(2026, 11, 29, 11, 42, 7, 318e6, time.UTC).UnixNano()
	podA = &recording.Pod{Name: "vllm-a-3", Addr: "10.4.7.31:5557", Engine: "vllm", Model: "llama", Direction: recording.Dial}
	podB = &recording.Pod{Name: "b", Addr: "10.4.7.32:5557", Engine: "sglang", Model: "org/qwen", Direction: recording.Dial, Rank: 1, Ranks: 2}
)

// event is what vLLM writes as one event.
type testEvent struct {
	kind   string // "BlockStored", …
	hashes []uint64
	parent uint64 // 0 = none
	tokens []uint32
	medium string
	lora   string
	loraID int64 // 0 = none
}

func (x testEvent) append(b []byte) []byte {
	switch x.kind {
	case "BlockStored":
		b = msgp.AppendString(msgp.AppendArrayHeader(b, 8), x.kind)
	case "BlockRemoved":
		b = msgp.AppendString(msgp.AppendArrayHeader(b, 3), x.kind)
	default:
		return msgp.AppendString(msgp.AppendArrayHeader(b, 1), x.kind)
	}
	b = msgp.AppendArrayHeader(b, uint32(len(x.hashes)))
	for _, h := range x.hashes {
		b = msgp.AppendUint64(b, h)
	}
	if x.kind == "BlockStored" {
		b = msgp.AppendNil(b)
		if x.parent != 0 {
			b = msgp.AppendUint64(b[:len(b)-1], x.parent)
		}
		b = msgp.AppendArrayHeader(b, uint32(len(x.tokens)))
		for _, id := range x.tokens {
			b = msgp.AppendUint32(b, id)
		}
		b = msgp.AppendInt(b, len(x.tokens)/max(len(x.hashes), 1))
		if b = msgp.AppendInt64(b, x.loraID); x.loraID == 0 {
			b = msgp.AppendNil(b[:len(b)-1])
		}
	}
	if b = msgp.AppendString(b, x.medium); x.medium == "" {
		b = msgp.AppendNil(b[:len(b)-1])
	}
	if x.kind == "BlockStored" {
		if b = msgp.AppendString(b, x.lora); x.lora == "" {
			b = msgp.AppendNil(b[:len(b)-1])
		}
	}
	return b
}

// message is a message of events, stamped 3 ms before it was received.
func message(p *recording.Pod, seq uint64, events ...testEvent) *recording.Record {
	return stamped(p, seq, float64(at)/1e9-0.003, events...)
}

func stamped(p *recording.Pod, seq uint64, ts float64, events ...testEvent) *recording.Record {
	b := msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 3), ts)
	b = msgp.AppendArrayHeader(b, uint32(len(events)))
	for _, e := range events {
		b = e.append(b)
	}
	return raw(p, []byte("kv@10.4.7.31:8000@llama"), binary.BigEndian.AppendUint64(nil, seq), msgp.AppendInt(b, 0))
}

func raw(p *recording.Pod, parts ...[]byte) *recording.Record {
	return &recording.Record{Type: recording.TypeFrame, At: at, Pod: p, Parts: parts}
}

func note(p *recording.Pod, n recording.Notice) *recording.Record {
	return &recording.Record{Type: recording.TypeNotice, At: at, Pod: p, Notice: n}
}

func number(n uint64) *uint64 { return &n }

// cut takes the last bytes of a message's payload away.
func cut(r *recording.Record, n int) *recording.Record {
	p := &r.Parts[len(r.Parts)-1]
	*p = (*p)[:len(*p)-n]
	return r
}

func store(hash uint64, tokens ...uint32) testEvent {
	return testEvent{kind: "BlockStored", hashes: []uint64{hash}, tokens: tokens, medium: "GPU"}
}

// rows are the rows of a table without its header, cut into fields.
func rows(text string) (list [][]string) {
	for line := range strings.Lines(text) {
		list = append(list, strings.Fields(line))
	}
	return list[min(1, len(list)):]
}

// columnOf returns one field of every row.
func columnOf(text string, i int) (list []string) {
	for _, r := range rows(text) {
		list = append(list, r[i])
	}
	return list
}

const (
	colPod   = 1
	colEvent = 4
	colFirst = 8
)

// capture makes a recording's records of what a real engine sent.
func capture(t testing.TB, name string) list {
	t.Helper()
	for _, c := range testdata.Captures(t) {
		if c.Name != name {
			continue
		}
		pods := make([]*recording.Pod, c.Ranks)
		var l list
		for i := range pods {
			engine := "vllm"
			if c.SGLang {
				engine = "sglang"
			}
			pods[i] = &recording.Pod{Name: "p", Addr: "127.0.0.1:5557", Rank: i, Ranks: c.Ranks, Engine: engine, Model: "tiny", Direction: recording.Dial}
			l = append(l, &recording.Record{Type: recording.TypePod, Pod: pods[i]})
		}
		for _, m := range c.Messages {
			l = append(l, &recording.Record{
				Type: recording.TypeFrame, At: int64(m.At * 1e9), Pod: pods[m.Rank],
				Parts: [][]byte{[]byte(m.Topic), binary.BigEndian.AppendUint64(nil, m.Seq), m.Payload},
			})
		}
		return l
	}
	t.Fatalf("no capture %s", name)
	return nil
}

// file writes records as a recording.
func file(t testing.TB, l list) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "a.eptap")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := recording.NewWriter(f, recording.Header{Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range l {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close([]byte("{}")), f.Close()); err != nil {
		t.Fatal(err)
	}
	return name
}

func read(t testing.TB, path string) (l list) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := recording.NewReader(f)
	for err == nil {
		var rec *recording.Record
		if rec, err = r.Next(); err == nil {
			l = append(l, rec)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatalf("%s: %v", path, err)
	}
	return l
}

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

// REC-01: a recording of a recording is the same one, and shows the same.
func TestRecord(t *testing.T) {
	l := append(capture(t, "vllm-0.32.0/dp2"), raw(podA, []byte("odd")), note(podA, recording.Notice{Kind: recording.Up, Why: "x"}))
	path := filepath.Join(t.TempDir(), "b.eptap")
	first, _, err := shown(t, &Command{Source: &File{Paths: []string{file(t, l)}}, Format: "wide", Write: Write{Target: recorder.Target{Path: path}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	second, _, err := shown(t, &Command{Source: &File{Paths: []string{path}}, Format: "wide"}, nil)
	if err != nil || first != second || first == "" {
		t.Errorf("REC-01: %v, %d and %d bytes", err, len(first), len(second))
	}
	got := read(t, path)
	last := got[len(got)-1]
	var a Account
	if err := json.Unmarshal(last.Body, &a); err != nil || last.Type != recording.TypeAccount || a.Kind != "Account" || a.Written.Bytes == 0 {
		t.Errorf("REC-01: no account at the end: %v %s", err, last.Body)
	}
	messages := func(l list) (out [][][]byte) {
		for _, r := range l {
			if r.Type == recording.TypeFrame {
				out = append(out, r.Parts)
			}
		}
		return out
	}
	if a, b := messages(l), messages(got); !slices.EqualFunc(a, b, func(x, y [][]byte) bool { return slices.EqualFunc(x, y, bytes.Equal) }) {
		t.Errorf("REC-01: %d messages became %d, or other ones", len(a), len(b))
	}
}

func TestRecordFiltered(t *testing.T) {
	l := list{message(podA, 1, store(1, 1)), message(podB, 1, store(2, 1)), note(podB, recording.Notice{Kind: recording.Gap, Count: 1})}
	path := filepath.Join(t.TempDir(), "b.eptap")
	c := &Command{Source: l, Format: "table", Write: Write{Target: recorder.Target{Path: path}, Filtered: true}}
	if err := c.Filter.Add("pod", "vllm-*", false); err != nil {
		t.Fatal(err)
	}
	if _, _, err := shown(t, c, nil); err != nil {
		t.Fatal(err)
	}
	frames := 0
	for _, r := range read(t, path) {
		if r.Type == recording.TypeFrame {
			frames++
		}
	}
	if frames != 1 {
		t.Errorf("%d messages, want 1", frames)
	}
}

// REC-07: each file of a rotation can be read alone, and only so many are kept.
func TestRotate(t *testing.T) {
	for keep, most := range map[int]int{2: 2, 1: 1, 0: 1 << 20} {
		t.Run(fmt.Sprintf("REC-07 keep %d", keep), func(t *testing.T) {
			dir := t.TempDir()
			l := slices.Repeat(capture(t, "vllm-0.32.0/llama"), 3)
			c := &Command{Source: l, Quiet: true, Write: Write{Target: recorder.Target{Path: filepath.Join(dir, "a.eptap"), RotateSize: 64 << 10, Keep: keep}}}
			_, stderr, err := shown(t, c, nil)
			if err != nil {
				t.Fatal(err)
			}
			files, _ := filepath.Glob(filepath.Join(dir, "*"))
			if len(files) > most || keep == 0 && len(files) < 3 {
				t.Errorf("%d files: %v", len(files), files)
			}
			total := 0
			for _, f := range files {
				for _, r := range read(t, f) { // fails without an account, or without its pods
					if r.Type == recording.TypeFrame {
						total++
					}
				}
			}
			if keep == 0 && total != len(l)-3 {
				t.Errorf("%d of %d messages in all files", total, len(l)-3)
			}
			if !strings.Contains(stderr, " files)") {
				t.Error(stderr)
			}
		})
	}
}

// REC-02, REC-04, REC-05 at the command.
func TestUnsoundRecordings(t *testing.T) {
	path := file(t, capture(t, "vllm-0.32.0/dialin"))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	version := bytes.Clone(whole)
	version[9] = 2
	for name, c := range map[string]struct {
		b      []byte
		strict bool
		kind   inspect.Kind
		code   string // "" = no error
		stderr string
	}{
		"REC-02 cut":          {whole[:len(whole)/2], false, 0, "", "ends at offset"},
		"REC-02 cut, strict":  {whole[:len(whole)/2], true, inspect.Incomplete, "E_RECORDING", ""},
		"REC-04 flipped bit":  {flipped, false, inspect.Failed, "E_RECORDING", ""},
		"REC-05 version 2":    {version, false, inspect.Failed, "E_RECORDING", ""},
		"no recording at all": {[]byte("hello"), false, inspect.Failed, "E_RECORDING", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var warned string
			f := &File{Paths: []string{"-"}, Stdin: bytes.NewReader(c.b), Strict: c.strict, Warn: func(s string) { warned = s }}
			_, stderr, err := shown(t, &Command{Source: f, Format: "table"}, nil)
			var own *inspect.Error
			switch {
			case c.code == "" && err != nil, c.code != "" && (!errors.As(err, &own) || own.Code != c.code || own.Kind != c.kind):
				t.Errorf("%v", err)
			case c.code != "" && c.kind == inspect.Failed && !strings.Contains(own.Error(), "offset"):
				t.Errorf("no offset: %v", err)
			}
			if !strings.Contains(warned, c.stderr) || err == nil && !strings.Contains(stderr, "tap: ") {
				t.Errorf("warned %q, stderr %q", warned, stderr)
			}
		})
	}
	t.Run("no such file", func(t *testing.T) {
		_, _, err := shown(t, &Command{Source: &File{Paths: []string{"/does/not/exist"}}}, nil)
		var own *inspect.Error
		if !errors.As(err, &own) || own.Code != "E_RECORDING" {
			t.Error(err)
		}
	})
}

func TestPartOfARecording(t *testing.T) {
	l := capture(t, "vllm-0.32.0/llama")
	path := file(t, l)
	from, to := time.Unix(0, l[11].At), time.Unix(0, l[20].At)
	c := &Command{Source: &File{Paths: []string{path}, From: Moment{at: from}, To: Moment{at: to}}, Format: "jsonl"}
	_, stderr, err := shown(t, c, nil)
	if err != nil || !strings.Contains(stderr, `"batches":10,`) {
		t.Errorf("%v %s", err, stderr)
	}
	t.Run("speed", func(t *testing.T) {
		began := time.Now()
		f := &File{Paths: []string{file(t, list{message(podA, 1, store(1, 1)), {Type: recording.TypeFrame, At: at + 100e6, Pod: podA}})}, Speed: 2}
		if _, _, err := shown(t, &Command{Source: f}, nil); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d < 50*time.Millisecond {
			t.Errorf("100 ms at double speed took %v", d)
		}
	})
}

// stuck is a stdout whose reader stands still until it is let go.
type stuck struct {
	testdata.Buffer
	let chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.let
	return s.Buffer.Write(b)
}

// UX-17: a reader that has seen enough ends tap, with its account.
func TestClosedPipe(t *testing.T) {
	var stderr testdata.Buffer
	s := &out.Streams{Out: broken{}, Err: &stderr}
	err := (&Command{Source: endless{}, Format: "table"}).Run(t.Context(), s)
	if !errors.Is(err, syscall.EPIPE) || !strings.Contains(stderr.String(), "tap: ") {
		t.Errorf("UX-17: %v, %s", err, &stderr)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// endless sends until nobody wants more.
type endless struct{}

func (endless) String() string { return "endless" }
func (endless) Run(ctx context.Context, emit func([]*recording.Record) error) error {
	for seq := uint64(0); ; seq++ {
		if err := emit([]*recording.Record{message(podA, seq, store(seq, 1, 2))}); err != nil {
			return err
		}
	}
}

// UX-18: an end from outside is a good end, even when stdout stands still.
func TestEndsWhileStuck(t *testing.T) {
	s := &stuck{let: make(chan struct{})}
	var stderr testdata.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	path := filepath.Join(t.TempDir(), "a.eptap")
	ended := make(chan error, 1)
	go func() {
		ended <- (&Command{Source: endless{}, Format: "jsonl", Write: Write{Target: recorder.Target{Path: path}}}).Run(ctx, &out.Streams{Out: s, Err: &stderr})
	}()
	time.Sleep(50 * time.Millisecond) // some output must be stuck
	cancel()
	if err := <-ended; err != nil || !strings.Contains(stderr.String(), `"kind":"Account"`) {
		t.Errorf("UX-18: %v, %s", err, &stderr)
	}
	if l := read(t, path); l[len(l)-1].Type != recording.TypeAccount {
		t.Error("UX-18: the recording has no account")
	}
	close(s.let)
}

// UX-19: the account on request, the stream goes on.
func TestReportsOnRequest(t *testing.T) {
	report, flush := make(chan struct{}), make(chan struct{})
	var o, e testdata.Buffer
	path := filepath.Join(t.TempDir(), "a.eptap")
	ctx, cancel := context.WithCancel(t.Context())
	records := make(chan *recording.Record)
	ended := make(chan error, 1)
	go func() {
		c := &Command{Source: fed(records), Format: "table", Report: report, Flush: flush, Write: Write{Target: recorder.Target{Path: path}}}
		ended <- c.Run(ctx, &out.Streams{Out: &o, Err: &e})
	}()
	records <- message(podA, 1, store(1, 1))
	report <- struct{}{}
	records <- message(podA, 2, store(1, 1))
	records <- message(podA, 3, store(1, 1)) // the source takes it when the second is dealt with
	flush <- struct{}{}
	report <- struct{}{} // comes behind the flush
	if n := strings.Count(e.String(), "matched the filter"); n < 1 {
		t.Errorf("UX-19: %d accounts: %s", n, &e)
	}
	b, err := os.ReadFile(path)
	if n := bytes.Count(b, []byte("kv@")); err != nil || n < 2 {
		t.Errorf("%d messages flushed, %v", n, err)
	}
	records <- message(podA, 4, store(1, 1))
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := strings.Count(e.String(), "matched the filter"); n != 3 {
		t.Errorf("UX-19: %d accounts: %s", n, &e)
	}
}

// fed is a source one record at a time.
type fed chan *recording.Record

func (fed) String() string { return "fed" }
func (f fed) Run(ctx context.Context, emit func([]*recording.Record) error) error {
	for {
		select {
		case r := <-f:
			if err := emit([]*recording.Record{r}); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
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
