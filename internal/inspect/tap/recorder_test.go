package tap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/recorder"
	"github.com/eppctl/eppctl/internal/testdata"
)

func recordsOf(t *testing.T, path string, kind recording.Type) (n int) {
	for _, r := range read(t, path) {
		if r.Type == kind {
			n++
		}
	}
	return n
}

func messages(n int) (l list) {
	for seq := range uint64(n) {
		l = append(l, message(podA, seq, store(seq, 1, 2)))
	}
	return l
}

// A recorder that is started again loses nothing, and the number of files counts
// those of earlier runs.
func TestRecorderStartedAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.eptap")
	var aside string
	for run := 1; run <= 3; run++ {
		_, stderr, err := shown(t, &Command{Source: messages(run), Quiet: true, Write: Write{Target: recorder.Target{Path: path}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		older, err := filepath.Glob(filepath.Join(dir, "a-*.eptap"))
		if err != nil || len(older) != run-1 {
			t.Fatalf("run %d: %d older files, %v", run, len(older), err)
		}
		if run > 1 {
			aside = older[len(older)-1]
			if n := recordsOf(t, aside, recording.TypeFrame); n != run-1 || !strings.Contains(stderr, "a.eptap was there already, and is "+aside) {
				t.Errorf("run %d: %d messages set aside; %s", run, n, stderr)
			}
		}
	}
	t.Run("keep", func(t *testing.T) {
		big := Write{Target: recorder.Target{Path: path, RotateSize: 1, Keep: 2}}
		if _, _, err := shown(t, &Command{Source: messages(5), Quiet: true, Write: big}, nil); err != nil {
			t.Fatal(err)
		}
		if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 2 {
			t.Errorf("%d files: %v", len(files), files)
		}
	})
	t.Run("an open file of somebody else", func(t *testing.T) {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := shown(t, &Command{Source: messages(1), Quiet: true, Write: Write{Target: recorder.Target{Path: path}}}, nil); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", st.Mode(), err)
		}
	})
}

func TestSourceIsTarget(t *testing.T) {
	path := file(t, messages(1))
	link := filepath.Join(t.TempDir(), "b.eptap")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	stdin, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	for _, c := range []*Command{
		{Source: &File{Paths: []string{path}}, Write: Write{Target: recorder.Target{Path: link}}},
		{Source: &File{Paths: []string{"-"}, Stdin: stdin}, Write: Write{Target: recorder.Target{Path: path}}},
	} {
		var own *inspect.Error
		if err := c.Check(); !errors.As(err, &own) || own.Kind != inspect.Usage {
			t.Errorf("%v", err)
		}
	}
	if err := (&Command{Source: &File{Paths: []string{path}}, Write: Write{Target: recorder.Target{Path: link + "2"}}}).Check(); err != nil {
		t.Error(err)
	}
}

// What is recorded can be read while it is recorded: the header at once, messages
// soon, on a pipe at once.
func TestRecordingIsHandedOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.eptap")
	begun := time.Now()
	r, err := newWriter(Write{Target: recorder.Target{Path: path}}, recording.Header{Program: "test"}, nil, begun)
	if err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return st.Size()
	}
	header := size()
	if header == 0 {
		t.Error("no header")
	}
	if err := errors.Join(r.write(message(podA, 1, store(1, 1))), r.handOn(begun.Add(recorder.FlushEvery/2))); err != nil || size() != header {
		t.Errorf("%d bytes at once, %v", size(), err)
	}
	if err := r.handOn(begun.Add(recorder.FlushEvery)); err != nil || size() <= header {
		t.Errorf("%d bytes after %v, %v", size(), recorder.FlushEvery, err)
	}
	if err := r.end(newAccount()); err != nil {
		t.Error(err)
	}

	records := make(chan *recording.Record)
	var stdout, stderr testdata.Buffer
	ended := make(chan error, 1)
	go func() {
		ended <- (&Command{Source: fed(records), Count: 2, Write: Write{Target: recorder.Target{Path: "-"}}}).Run(t.Context(), &out.Streams{Out: &stdout, Err: &stderr})
	}()
	records <- message(podA, 1, store(1, 1))
	eventually(t, "the message on the pipe", func() bool { return strings.Contains(stdout.String(), "kv@") }, stdout.String)
	records <- message(podA, 2, store(1, 1))
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A full disk shows at once, and once.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Log("no /dev/full on this system")
		return
	}
	_, stderr, err := shown(t, &Command{Source: endless{}, Quiet: true, Write: Write{Target: recorder.Target{Path: "/dev/full"}}}, nil)
	var own *inspect.Error
	if !errors.As(err, &own) || own.Code != "E_RECORDING" || strings.Count(err.Error(), "/dev/full") != 1 {
		t.Errorf("%v", err)
	}
	if strings.Contains(stderr, "wrote") {
		t.Error(stderr)
	}
}

// The files of a rotation play back as one recording, and each alone.
func TestPlaysRotation(t *testing.T) {
	dir := t.TempDir()
	l := list{note(podA, recording.Notice{Kind: recording.Up, Why: "ZMTP 3.1"})}
	l = append(l, messages(6)...)
	if _, _, err := shown(t, &Command{Source: l, Quiet: true, Write: Write{Target: recorder.Target{Path: filepath.Join(dir, "a.eptap"), RotateSize: 400}}}, nil); err != nil {
		t.Fatal(err)
	}
	paths, err := Expand([]string{filepath.Join(dir, "*.eptap")})
	if err != nil || len(paths) < 3 || filepath.Base(paths[len(paths)-1]) != "a.eptap" {
		t.Fatalf("%v %v", paths, err)
	}
	stdout, stderr, err := shown(t, &Command{Source: &File{Paths: paths}, Format: "table", NoHeaders: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(stdout, " UP "); got != 1 || strings.Count(stdout, " stored ") != 6 || !strings.Contains(stderr, "1 of 1 pod") {
		t.Errorf("%d UP rows:\n%s%s", got, stdout, stderr)
	}
	for i := range uint64(6) {
		if line := strings.Split(stdout, "\n")[1+i]; !strings.Contains(line, fmt.Sprintf("%016x", i)) {
			t.Errorf("row %d: %s", i, line)
		}
	}
	if _, stderr, err = shown(t, &Command{Source: &File{Paths: paths[1:2]}, Format: "table"}, nil); err != nil || !strings.Contains(stderr, "1 of 1 pod") {
		t.Errorf("the second file alone: %v %s", err, stderr)
	}
	if _, err := Expand([]string{filepath.Join(dir, "b*")}); err == nil {
		t.Error("a pattern that fits nothing is accepted")
	}
}

func TestMoments(t *testing.T) {
	begin := time.Date(2026, 11, 29, 22, 3, 0, 0, time.UTC) // time.Local is UTC here
	end := begin.Add(3 * time.Hour)
	for text, want := range map[string]string{
		"2026-11-29T23:00:00Z":      "2026-11-29T23:00:00Z",
		"2026-11-29T23:00:00+01:00": "2026-11-29T22:00:00Z",
		"2026-11-29 23:00":          "2026-11-29T23:00:00Z",
		"23:00":                     "2026-11-29T23:00:00Z",
		"22:00":                     "2026-11-29T22:00:00Z", // before the begin, and tomorrow's is behind the end
		"00:30:01.5":                "2026-11-30T00:30:01.5Z",
		"+5m":                       "2026-11-29T22:08:00Z",
		"-1h":                       "2026-11-30T00:03:00Z",
	} {
		m, err := ParseMoment(text)
		if got := m.in(begin, end).UTC().Format(time.RFC3339Nano); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "yesterday", "-", "--5m", "+-5m", "5m", "25:00"} {
		if _, err := ParseMoment(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestEndOfARecording(t *testing.T) {
	l := messages(4)
	for i := range l {
		l[i].At = at + int64(i)*1e9
	}
	last, err := ParseMoment("-1s")
	if err != nil {
		t.Fatal(err)
	}
	up := note(podA, recording.Notice{Kind: recording.Up})
	_, stderr, err := shown(t, &Command{Source: &File{Paths: []string{file(t, append(list{up}, l...))}, From: last}, Format: "jsonl"}, nil)
	if err != nil || !strings.Contains(stderr, `"batches":2,`) || !strings.Contains(stderr, `"duration_ms":1000,`) {
		t.Errorf("%v %s", err, stderr)
	}
}

// A directory, or a file that is not there, is told as what it is.
func TestNoRecording(t *testing.T) {
	for path, want := range map[string]string{t.TempDir(): "is a directory", "/does/not/exist": "no such file"} {
		_, stderr, err := shown(t, &Command{Source: &File{Paths: []string{path}}}, nil)
		var own *inspect.Error
		if !errors.As(err, &own) || own.Kind != inspect.Usage || !strings.Contains(err.Error(), want) || own.Hint == "" {
			t.Errorf("%v", err)
		}
		if bytes.Contains([]byte(stderr), []byte("tap:")) {
			t.Errorf("an account of nothing: %s", stderr)
		}
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
