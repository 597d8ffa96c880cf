package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/eppctl/eppctl/internal/core/view"
)

// snapshots reads the frames that a call prints.
func snapshots(t *testing.T, args ...string) (list []view.Snapshot, stderr string) {
	t.Helper()
	code, stdout, stderr := eppctlRun(append([]string{"top", "-o", "jsonl"}, args...)...)
	if code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, stderr)
	}
	for dec := json.NewDecoder(strings.NewReader(stdout)); dec.More(); {
		var s view.Snapshot
		if err := dec.Decode(&s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list, stderr
}

// A recording that tap made of a running serve is shown as frames: what each pod held
// and how its streams were, then. What it prints can be read again.
func TestTopReadsRecordings(t *testing.T) {
	r := startRecorded(t)
	blocks := func(s *view.Snapshot) (n int) {
		for i := range s.Pods {
			for k := range s.Pods[i].Ranks {
				n += s.Pods[i].Ranks[k].GPU
			}
		}
		return n
	}
	newest := func(held func(*view.Snapshot) bool) func() error {
		return func() error {
			code, stdout, stderr := eppctlRun("top", "--once", "-o", "json", "--read", r.file)
			var s view.Snapshot
			if code != 0 || json.Unmarshal([]byte(stdout), &s) != nil {
				return fmt.Errorf("exit code %d: %s", code, stderr)
			}
			for i := range s.Pods {
				if p := &s.Pods[i]; p.Telemetry.State != "fresh" || p.Ranks[0].Sync != "live" {
					return fmt.Errorf("%s is %s and %s", p.Name, p.Ranks[0].Sync, p.Telemetry.State)
				}
			}
			if len(s.Pods) != 3 || !held(&s) {
				return fmt.Errorf("%d pods, %d blocks", len(s.Pods), blocks(&s))
			}
			return nil
		}
	}
	eventuallyOK(t, "all streams are live in the recording", newest(func(*view.Snapshot) bool { return true }))
	// The first frame, of a fixed time, is older than what comes now.
	eventuallyOK(t, "a second frame", func() error {
		if _, stdout, stderr := eppctlRun("top", "-o", "jsonl", "-i", "100ms", "--read", r.file); strings.Count(stdout, "\n") < 2 {
			return fmt.Errorf("%d frames: %s", strings.Count(stdout, "\n"), stderr)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.send(ctx, 0, idList(1, 800), 1)
	r.send(ctx, 1, idList(5000, 400), 1)
	eventuallyOK(t, "the prompts' blocks stand in the recording", newest(func(s *view.Snapshot) bool { return blocks(s) > 0 }))
	if err := r.tap.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := r.tap.Wait(); err != nil {
		t.Errorf("tap: %v: %s", err, r.said.String())
	}
	frames, _ := snapshots(t, "--read", r.file, "-i", "100ms", "--config", r.config)
	if len(frames) < 2 {
		t.Fatalf("%d frames", len(frames))
	}
	for i := range frames {
		if s := &frames[i]; s.Source != "recording" || i > 0 && s.At <= frames[i-1].At {
			t.Errorf("frame %d is of %s, from a %s", i, s.At, s.Source)
		}
	}
	if first, last := &frames[0], &frames[len(frames)-1]; blocks(first) >= blocks(last) {
		t.Errorf("%d blocks at the begin, %d at the end", blocks(first), blocks(last))
	}
	_, text, _ := eppctlRun("top", "--read", r.file, "-o", "jsonl", "-i", "100ms")
	again := filepath.Join(t.TempDir(), "frames.jsonl")
	if err := os.WriteFile(again, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	read, _ := snapshots(t, "--read", again)
	if len(read) != len(frames) || read[0].At != frames[0].At {
		t.Errorf("%d frames of %d are read again", len(read), len(frames))
	}
	if _, stdout, _ := eppctlRun("top", "--batch", "--read", again); strings.Count(stdout, "a recording holds what engines said, and no picks") != len(frames)-1 || !strings.Contains(stdout, "engines report") {
		t.Errorf("as text:\n%s", stdout)
	}
	// A recording and a file of frames that are cut short are shown as far as they go.
	for _, path := range []string{r.file, again} {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		short := filepath.Join(t.TempDir(), "short")
		if err := os.WriteFile(short, whole[:len(whole)-7], 0o600); err != nil {
			t.Fatal(err)
		}
		if got, notes := snapshots(t, "--read", short); len(got) == 0 || !strings.Contains(notes, "warn: ") || !strings.Contains(notes, "ends ") {
			t.Errorf("%s cut short: %d frames, %q", path, len(got), notes)
		}
	}
}

func TestTopReadUsage(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.json")
	if err := os.WriteFile(bad, []byte(`{"kind":"Explanation"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--read", bad, "--addr", "127.0.0.1:1"}, exitUsage, "--addr does not go with --read"},
		{[]string{"--read", bad, "--pod", "a"}, exitUsage, "--pod does not go with --read"},
		{[]string{"--read", bad, "--once"}, exitFailed, "frame 1 of " + bad + ": it is no Snapshot"},
		{[]string{"--read", filepath.Join(dir, "absent"), "--once"}, exitUsage, "no such file"},
		{[]string{"--read", dir, "--once"}, exitFailed, "is a directory"},
		{[]string{"--read", filepath.Join(dir, "*.eptap"), "--once"}, exitUsage, "no file fits it"},
		{[]string{"--read", "-", "--once"}, exitFailed, "frame 1 of -: EOF"},
	} {
		code, _, stderr := eppctlRun(append([]string{"top"}, tc.args...)...)
		if code != tc.code || !strings.Contains(stderr, tc.want) {
			t.Errorf("%v: exit code %d, want %d: %s", tc.args, code, tc.code, stderr)
		}
	}
}
