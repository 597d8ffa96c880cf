package recording_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/recording"
)

var (
	podA = &recording.Pod{Name: "a\x1b[2J", Addr: "10.0.0.1:5557", Ranks: 2, Engine: "vllm", Model: "m", Direction: recording.Dial}
	podB = &recording.Pod{Name: "b", Addr: "10.0.0.2:5557", Rank: 1, Direction: recording.Listen}
)

func number(n uint64) *uint64 { return &n }

// sample has every type of record, and messages of every shape.
func sample() []*recording.Record {
	return []*recording.Record{
		{Type: recording.TypePod, Pod: podA},
		{Type: recording.TypeNotice, At: 5, Pod: podA, Notice: recording.Notice{Kind: recording.Up, Why: "ZMTP 3.1"}},
		{Type: recording.TypeFrame, At: 10, Pod: podA, Parts: [][]byte{[]byte("kv@"), make([]byte, 8), {0x93}}},
		{Type: recording.TypePod, Pod: podB},
		{Type: recording.TypeFrame, At: 9, Pod: podB, Parts: [][]byte{{1, 2, 3, 4}}},
		{Type: recording.TypeFrame, At: 11, Pod: podB, Parts: [][]byte{{}, {1, 2, 3, 4}, {}, {5}}},
		{Type: recording.TypeFrame, At: 11, Pod: podB, Parts: [][]byte{}},
		{Type: recording.TypeNotice, At: 12, Pod: podA, Notice: recording.Notice{Kind: recording.Gap, FromSeq: number(3), ToSeq: number(4), Count: 2}},
		{Type: recording.TypeReplay, At: 13, Pod: podA, Parts: [][]byte{{}, make([]byte, 8), {0x90}}},
		{Type: recording.TypeNotice, At: -1, Notice: recording.Notice{Kind: recording.Dropped, Count: 7}},
		{Type: recording.TypePage, At: 14, Pod: podB, Status: 503, Body: []byte("busy")},
		{Type: recording.TypeSpec, At: 14, Pod: podB, Body: []byte(`{"address":"h:1"}`)},
		{Type: recording.TypeState, At: 14, Pod: podB, Body: []byte(`{"state":"live"}`)},
		{Type: recording.TypeCard, At: 15, Body: []byte(`{"kind":"Explanation"}`)},
		{Type: recording.TypeFleet, At: 16, Body: []byte(`{"run":"r"}`)},
		{Type: recording.TypeDecision, At: 17, Body: []byte(`{"n":1}`)},
		{Type: recording.TypeOutcome, At: 18, Body: []byte(`{"n":1}`)},
	}
}

var account = []byte(`{"kind":"Account"}`)

func written(t testing.TB, records []*recording.Record) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := recording.NewWriter(&b, recording.Header{Program: "test", Begun: "1970-01-01T00:00:00Z"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(account); err != nil {
		t.Fatal(err)
	}
	if int64(b.Len()) != w.Size() {
		t.Errorf("%d bytes, Size says %d", b.Len(), w.Size())
	}
	return b.Bytes()
}

// readAll returns the records before the error that ends them.
func readAll(b []byte) (records []*recording.Record, r *recording.Reader, err error) {
	r, err = recording.NewReader(bytes.NewReader(b))
	for err == nil {
		var rec *recording.Record
		if rec, err = r.Next(); err == nil {
			records = append(records, rec)
		}
	}
	return records, r, err
}

// REC-01: what is read is what was written, messages byte for byte.
func TestRoundTrip(t *testing.T) {
	want := append(sample(), &recording.Record{Type: recording.TypeAccount, Body: account})
	got, r, err := readAll(written(t, sample()))
	if !errors.Is(err, io.EOF) || r.Unknown() != 0 || r.Header().Program != "test" {
		t.Fatalf("%v, %d unknown, %+v", err, r.Unknown(), r.Header())
	}
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("record %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

// REC-02: a file that is cut anywhere reads up to its last whole record.
func TestCutAnywhere(t *testing.T) {
	b := written(t, sample())
	whole, _, _ := readAll(b)
	last := 0
	for n := range b {
		got, _, err := readAll(b[:n])
		var fe *recording.FormatError
		if !errors.As(err, &fe) {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if n == 0 {
			if fe.Err != recording.ErrNoRecording {
				t.Errorf("empty: %v", err)
			}
			continue
		}
		if fe.Err != recording.ErrCut || fe.Offset > int64(n) {
			t.Errorf("cut at %d: %v", n, err)
		}
		if len(got) < last || len(got) > 0 && !reflect.DeepEqual(got, whole[:len(got)]) {
			t.Errorf("cut at %d: %d records, then other ones", n, len(got))
		}
		last = len(got)
	}
	if last != len(whole)-1 { // all but the account
		t.Errorf("%d of %d records before the last byte", last, len(whole))
	}
}

// REC-04: a flipped bit is found, and the offset is that of its record.
func TestFlippedBits(t *testing.T) {
	b := written(t, sample())
	whole, _, _ := readAll(b)
	const headerFrom = 16
	headerTo := headerFrom + int(binary.BigEndian.Uint32(b[12:]))
	for i := range b {
		bad := bytes.Clone(b)
		bad[i] ^= 0x10
		got, _, err := readAll(bad)
		var fe *recording.FormatError
		if errors.Is(err, io.EOF) && len(got) == len(whole) {
			if i < headerFrom || i >= headerTo { // the header's text has no checksum
				t.Errorf("bit of byte %d: not found", i)
			}
		} else if !errors.As(err, &fe) || fe.Offset > int64(i) {
			t.Errorf("bit of byte %d: %v", i, err)
		}
	}
}

// begin is a recording without records.
func begin(t testing.TB) []byte {
	b := written(t, nil)
	return b[:len(b)-8-1-len(account)]
}

func frame(body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	b = append(b, body...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

// REC-03: a length alone allocates nothing.
func TestHugeLength(t *testing.T) {
	for name, length := range map[string]uint32{"REC-03 2^32-1": 1<<32 - 1, "the largest there may be": recording.MaxRecord} {
		t.Run(name, func(t *testing.T) {
			b := binary.BigEndian.AppendUint32(begin(t), length)
			b = append(b, 1, 2, 3)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := readAll(b)
			runtime.ReadMemStats(&after)
			var fe *recording.FormatError
			if !errors.As(err, &fe) {
				t.Errorf("%v", err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
				t.Errorf("allocated %d bytes", n)
			}
		})
	}
}

// REC-03: a record longer than any there is is damage, known by its length alone;
// the longest is waited for.
func TestLongestRecord(t *testing.T) {
	for length, want := range map[uint32]error{1<<32 - 1: recording.ErrDamaged, 64<<20 + 1: recording.ErrDamaged, 64 << 20: recording.ErrCut} {
		b := append(binary.BigEndian.AppendUint32(begin(t), length), 1, 2, 3)
		if _, _, err := readAll(b); !errors.Is(err, want) {
			t.Errorf("length %d: %v, want %v", length, err, want)
		}
	}
}

// REC-05, and bodies that are not what their type says.
func TestForeign(t *testing.T) {
	version2 := begin(t)
	version2[9] = 2
	flags := begin(t)
	flags[11] = 1
	long := begin(t)
	binary.BigEndian.PutUint32(long[12:], 1<<31)
	for name, c := range map[string]struct {
		b    []byte
		want error
		text string
	}{
		"REC-05 version 2":    {version2, recording.ErrVersion, "version 2"},
		"flags":               {flags, recording.ErrVersion, "0x0001"},
		"header too long":     {long, recording.ErrDamaged, "header of"},
		"text mode":           {[]byte("\x89EPTAP\n\x00\x01\x00\x00"), recording.ErrNoRecording, "binary mode"},
		"something else":      {[]byte("GET / HTTP/1.1\r\n\r\n"), recording.ErrNoRecording, "does not begin"},
		"empty record":        {append(begin(t), frame(nil)...), recording.ErrDamaged, "0 bytes"},
		"too short":           {append(begin(t), frame([]byte{1, 0, 0})...), recording.ErrDamaged, "too short"},
		"unnamed pod":         {append(begin(t), frame([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0})...), recording.ErrDamaged, "pod 3"},
		"parts beyond":        {append(begin(t), frame([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255})...), recording.ErrDamaged, "65535 parts"},
		"notice without JSON": {append(begin(t), frame([]byte{3, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, '{'})...), recording.ErrDamaged, "notice"},
		"pod number taken": {
			append(append(begin(t), frame([]byte("\x02\x00\x00{}"))...), frame([]byte("\x02\x00\x00{}"))...), recording.ErrDamaged, "taken",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readAll(c.b)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("REC-05 unknown type 77", func(t *testing.T) {
		b := append(begin(t), frame([]byte{77, 1, 2})...)
		b = append(b, frame(append([]byte{255}, account...))...)
		got, r, err := readAll(b)
		if !errors.Is(err, io.EOF) || r.Unknown() != 1 || len(got) != 1 {
			t.Errorf("%v, %d unknown, %d records", err, r.Unknown(), len(got))
		}
	})
}

func TestWriterRefuses(t *testing.T) {
	w, err := recording.NewWriter(io.Discard, recording.Header{})
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*recording.Record{
		"parts": {Type: recording.TypeFrame, Parts: make([][]byte, 1<<16)},
		"bytes": {Type: recording.TypePage, Body: make([]byte, recording.MaxRecord)},
		"type":  {Type: 99},
	} {
		if err := w.Write(r); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}

// FuzzReader: no bytes bring the reader down, hold it up, or make it allocate far
// beyond what it is given; and what it reads it reads again when written.
func FuzzReader(f *testing.F) {
	b := written(f, sample())
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add(append(begin(f), frame([]byte{77})...))
	f.Add(binary.BigEndian.AppendUint32(begin(f), 1<<32-1))
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		records, _, err := readAll(b)
		runtime.ReadMemStats(&after)
		// JSON may hold a thousand small things a byte each; buffers double.
		if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20+uint64(len(b))*256 {
			t.Errorf("%d bytes allocated for %d", n, len(b))
		}
		if err == nil {
			t.Fatal("no end")
		}
		var again bytes.Buffer
		w, err := recording.NewWriter(&again, recording.Header{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if err := w.Write(r); err != nil {
				return // a pod twice under two numbers, say, shifts nothing but numbers
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		frames := func(rs []*recording.Record) (out []*recording.Record) {
			for _, r := range rs {
				if r.Type == recording.TypeFrame || r.Type == recording.TypeReplay {
					out = append(out, r)
				}
			}
			return out
		}
		got, _, _ := readAll(again.Bytes())
		if !reflect.DeepEqual(frames(got), frames(records)) {
			t.Errorf("%d messages came back as %d, or other ones", len(frames(records)), len(frames(got)))
		}
	})
}

// What stood before a recording was begun is told at its begin: no reader takes the
// age of a connection for a part of the recording. What came is as it came.
func TestStoodBefore(t *testing.T) {
	begun := time.Date(2026, 11, 29, 11, 42, 7, 5, time.UTC)
	old, late := begun.Add(-time.Hour).UnixNano(), begun.Add(time.Second).UnixNano()
	stood := []*recording.Record{
		{Type: recording.TypeNotice, Pod: podA, Notice: recording.Notice{Kind: recording.Up}},
		{Type: recording.TypeNotice, Pod: podA, Notice: recording.Notice{Kind: recording.Down}},
		{Type: recording.TypeSpec, Pod: podA, Body: []byte(`{"address":"h:1"}`)},
		{Type: recording.TypeState, Pod: podA, Body: []byte(`{"state":"live"}`)},
	}
	came := []*recording.Record{
		{Type: recording.TypeNotice, Pod: podA, Notice: recording.Notice{Kind: recording.Gap}},
		{Type: recording.TypeFrame, Pod: podA, Parts: [][]byte{{1}}},
	}
	for _, c := range []struct {
		source      string
		begun       string
		at          int64
		stood, came int64
	}{
		{"", begun.Format(time.RFC3339Nano), old, begun.UnixNano(), old},
		{"", begun.Format(time.RFC3339Nano), late, late, late},
		{"", begun.Format(time.RFC3339Nano), 0, 0, 0}, // no time is told
		{"", "", old, old, old},
		{recording.SourceRecording + "a.eptap", begun.Format(time.RFC3339Nano), old, old, old},
		{"", "yesterday", old, old, old},
	} {
		var b bytes.Buffer
		w, err := recording.NewWriter(&b, recording.Header{Source: c.source, Begun: c.begun})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range append(stood, came...) {
			r.At = c.at
			if err := w.Write(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(account); err != nil {
			t.Fatal(err)
		}
		got, _, err := readAll(b.Bytes())
		if !errors.Is(err, io.EOF) || len(got) != 1+len(stood)+len(came)+1 {
			t.Fatalf("%v, %d records", err, len(got))
		}
		for i, r := range got[1 : len(got)-1] {
			want := c.stood
			if i >= len(stood) {
				want = c.came
			}
			if r.At != want {
				t.Errorf("%q begun %q, %d: record %d is of %d, want %d", c.source, c.begun, c.at, i, r.At, want)
			}
		}
	}
}
