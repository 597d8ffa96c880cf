package tap

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/testdata"
)

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
