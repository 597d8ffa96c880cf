package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/eppctl/eppctl/internal/core/recording"
)

var recordingBegun = time.Date(2026, 11, 29, 11, 42, 0, 0, time.UTC)

// oldStream is a recording of six seconds, made of a serve whose stream had been up for
// longer: batches come 2 and 6 s after its begin.
func oldStream(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.eptap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := recording.NewWriter(f, recording.Header{Program: "test", Begun: recordingBegun.Format(time.RFC3339Nano)})
	if err != nil {
		t.Fatal(err)
	}
	p := &recording.Pod{Name: "a", Addr: "127.0.0.1:5557", Ranks: 1, Engine: "vllm", Model: "m", Direction: recording.Dial}
	up := recordingBegun.Add(-100 * time.Hour).UnixNano()
	records := []*recording.Record{
		{Type: recording.TypePod, Pod: p},
		{Type: recording.TypeNotice, At: up, Pod: p, Notice: recording.Notice{Kind: recording.Up}},
		{Type: recording.TypeState, At: up, Pod: p, Body: []byte(`{"state":"live","last_event":1}`)},
	}
	for i, after := range []time.Duration{2 * time.Second, 6 * time.Second} {
		b := msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 2), 1)
		b = msgp.AppendString(msgp.AppendArrayHeader(msgp.AppendArrayHeader(b, 1), 1), "AllBlocksCleared")
		records = append(records, &recording.Record{
			Type: recording.TypeFrame, At: recordingBegun.Add(after).UnixNano(), Pod: p,
			Parts: [][]byte{{}, binary.BigEndian.AppendUint64(nil, uint64(i)), b},
		})
	}
	for _, r := range records {
		err = errors.Join(err, w.Write(r))
	}
	if err := errors.Join(err, w.Close([]byte("{}")), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// A recording begins when it was begun, however long its streams have been up: every
// command that reads one reckons from there.
func TestRecordingsBeginWhenBegun(t *testing.T) {
	path := oldStream(t)
	run := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := eppctlRun(append(args, "--read", path)...)
		if code != want {
			t.Fatalf("%v: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
		return stdout, stderr
	}
	if text, sum := run(0, "tap", "--from", "+0s", "--to", "+3s"); !strings.Contains(text, "11:42:02") || strings.Contains(text, "11:42:06") || !strings.Contains(sum, "1 batch,") {
		t.Errorf("tap --from +0s --to +3s: %q, %q", text, sum)
	}
	if _, sum := run(0, "tap"); !strings.Contains(sum, "tap: 6.0s,") {
		t.Errorf("the account of six seconds: %q", sum)
	}
	// Were the age of the stream waited for, these six seconds would take hours.
	if text, _ := run(0, "tap", "--speed", "10"); !strings.Contains(text, "11:42:06") {
		t.Errorf("tap --speed: %q", text)
	}
	text, errs := run(0, "explain", "--model", "m", "--token-ids", "1,2", "-o", "json", "--at", "+2s")
	if !strings.Contains(errs, "before the recording began is not known: a\n") {
		t.Errorf("a stream that was up before: %q", errs)
	}
	var x struct {
		At time.Time `json:"at"`
	}
	if err := json.Unmarshal([]byte(text), &x); err != nil || !x.At.Equal(recordingBegun.Add(2*time.Second)) {
		t.Errorf("explain --at +2s is of %v: %v", x.At, err)
	}
	if _, errs := run(exitUsage, "explain", "--model", "m", "--token-ids", "1,2", "--at", "+7s"); !strings.Contains(errs, "it goes from 2026-11-29T11:42:00Z to 2026-11-29T11:42:06Z") {
		t.Errorf("explain behind the end: %q", errs)
	}
	frames, _ := snapshots(t, "--read", path, "-i", "1s")
	var ats []string
	for i := range frames {
		ats = append(ats, frames[i].At)
	}
	if got := strings.Join(ats, " "); !strings.HasPrefix(got, "2026-11-29T11:42:01") || !strings.Contains(ats[len(ats)-1], "11:42:06") {
		t.Errorf("frames of top are of %s", got)
	}
}
