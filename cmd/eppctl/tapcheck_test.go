package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/inspect/check"
	"github.com/eppctl/eppctl/internal/sim"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
	"github.com/eppctl/eppctl/internal/testdata"
)

// rig is one pod under check: a simulated engine for its HTTP interface, and a
// publisher of events that the test writes.
type rig struct {
	t      *testing.T
	engine *sim.Engine
	pub    *zmtp.Publisher
	replay *zmtp.Replay
}

func newRig(t *testing.T, o sim.EngineOptions) *rig {
	t.Helper()
	if o.Speedup == 0 {
		o.Speedup = 50
	}
	e, err := sim.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	r := &rig{t: t, engine: e}
	if r.pub, err = zmtp.Listen("127.0.0.1:0", zmtp.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.pub.Close() })
	if r.replay, err = zmtp.ListenReplay("127.0.0.1:0", zmtp.ReplayOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.replay.Close() })
	return r
}

// again calls do every few milliseconds until the test ends: whoever connects
// late misses nothing.
func (r *rig) again(do func(i int)) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				do(i)
			}
		}
	}()
	r.t.Cleanup(func() { close(done); <-ended })
}

// publish sends a batch of these events again and again.
func (r *rig) publish(events ...any) {
	payload := testdata.Batch(r.t, nil, events...)
	r.again(func(i int) { r.pub.Send("", uint64(i), payload) })
}

// request runs prompts on the engine, each another one.
func (r *rig) request() {
	r.again(func(i int) {
		prompt := make([]int, 100)
		for k := range prompt {
			prompt[k] = 1000*k + i
		}
		b, _ := json.Marshal(map[string]any{"model": "sim", "prompt": prompt, "max_tokens": 1})
		resp, err := http.Post(r.engine.URL()+"/v1/completions", "application/json", bytes.NewReader(b))
		if err == nil {
			resp.Body.Close()
		}
	})
}

// entry is an element of pods, with keys beside those of every one.
func (r *rig) entry(name, keys string) string {
	return fmt.Sprintf("- {name: %s, address: %q%s}\n", name, r.engine.Addr(), keys)
}

// own are the keys of the test's own publisher.
func (r *rig) own() string {
	return fmt.Sprintf(", events: %q, replay: %q", "tcp://"+r.pub.Addr(), "tcp://"+r.replay.Addr())
}

func podsFile(t *testing.T, pods ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "eppctl.yaml")
	if err := os.WriteFile(path, []byte("pods:\n"+strings.Join(pods, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// eppctl runs the program as a process of its own and returns its exit code.
func eppctl(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "eppctl", args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	return out.String(), errs.String(), code
}

// checked runs tap --check and returns the codes of its warnings and errors.
func checked(t *testing.T, args ...string) (codes []string, r check.Report, code int) {
	t.Helper()
	stdout, stderr, code := eppctl(t, append([]string{"tap", "--check", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in %q; stderr: %s", err, stdout, stderr)
	}
	for _, f := range r.Findings {
		if f.Severity != "info" {
			codes = append(codes, f.Code)
		}
	}
	if (code == 3) != (len(codes) > 0) || code != 0 && code != 3 {
		t.Errorf("exit code %d with findings %q: %s", code, codes, stderr)
	}
	return codes, r, code
}

// fewEvents ends a run when it has heard some, however slow the machine is.
var fewEvents = []string{"-c", "3", "--for", "60s"}

// aWhile is for streams without an event that could be counted.
var aWhile = []string{"--for", "4s"}

// TestTapCheckFinds produces each mismatch for real, against the real program.
func TestTapCheckFinds(t *testing.T) {
	const h = uint64(1) << 60
	full := testdata.Stored(h, nil, 32)
	digest := bytes.Repeat([]byte{7}, 32)
	mute := sim.EngineOptions{NoEvents: true}
	closed := testdata.Deaf(t)
	for _, c := range []struct {
		name   string
		engine sim.EngineOptions
		set    func(r *rig) string // plays, and returns the pod's further keys
		until  []string
		want   []string // codes, all of them; none = exit code 0
		say    string
	}{
		{"all as it should be", sim.EngineOptions{}, func(r *rig) string { r.request(); return ", block_size: 32" }, fewEvents, nil, ""},
		{"all as it should be, SGLang", sim.EngineOptions{Kind: pod.EngineSGLang}, func(r *rig) string { r.request(); return "" }, fewEvents, nil, ""},
		{"no events though requests run", mute, func(r *rig) string { r.request(); return r.own() }, aWhile, []string{"connected-silent"}, "prompt tokens were computed"},
		{"no event source", mute, func(r *rig) string { r.request(); return "" }, aWhile, []string{"no-event-sources"}, ""},
		{"EX-10: block size 16 configured, events of 64", sim.EngineOptions{BlockSize: 64}, func(r *rig) string { r.request(); return ", block_size: 16" },
			fewEvents, []string{"block-size-mismatch"}, `"value":"16","expected":"64"`},
		{"block size of the engine's page", mute, func(r *rig) string { r.publish(testdata.Stored(h, nil, 64)); return r.own() },
			fewEvents, []string{"block-size-mismatch"}, `"value":"32","expected":"64"`},
		{"hashes as byte strings", mute, func(r *rig) string { r.publish(testdata.Stored(digest, nil, 32)); return r.own() }, fewEvents, nil, "hashes as byte strings"},
		{"hashes in two forms", mute, func(r *rig) string { r.publish(full, testdata.Stored(digest, nil, 32)); return r.own() }, fewEvents, []string{"hash-form"}, ""},
		{"hashes that are none", mute, func(r *rig) string { r.publish(full, testdata.Stored("abc", nil, 32)); return r.own() }, fewEvents, []string{"hash-form"}, ""},
		{"no token ids", mute, func(r *rig) string { r.publish(testdata.Stored(h, nil, 0, "token_ids", []any{})); return r.own() },
			fewEvents, []string{"no-token-ids"}, ""},
		{"sliding windows followed", mute, func(r *rig) string {
			r.publish(testdata.Stored(h, nil, 32, "group_idx", 0, "kv_cache_spec_kind", "sliding_window", "kv_cache_spec_sliding_window", 64),
				testdata.Stored(h, nil, 32, "group_idx", 1, "kv_cache_spec_kind", "full_attention"))
			return r.own()
		}, fewEvents, nil, "followed exactly"},
		{"sliding windows alone", mute, func(r *rig) string {
			r.publish(testdata.Stored(h, nil, 32, "group_idx", 0, "kv_cache_spec_kind", "sliding_window", "kv_cache_spec_sliding_window", 64))
			return r.own()
		}, fewEvents, []string{"hybrid-groups"}, "no group holds whole prompts"},
		{"groups of another kind", mute, func(r *rig) string {
			r.publish(testdata.Stored(h, nil, 32, "group_idx", 0), testdata.Stored(h, nil, 32, "group_idx", 1, "kv_cache_spec_kind", "mamba"))
			return r.own()
		}, fewEvents, []string{"hybrid-groups"}, "mamba"},
		{"no sequence frame", mute, func(r *rig) string {
			payload := testdata.Batch(t, nil, full)
			r.again(func(int) { r.pub.SendFrames([]byte("kv"), payload) })
			return r.own()
		}, aWhile, []string{"wrong-framing"}, "2 frames"},
		{"no batches", mute, func(r *rig) string {
			r.again(func(i int) { r.pub.Send("", uint64(i), []byte("{}")) })
			return r.own()
		}, aWhile, []string{"events-undecodable"}, ""},
		{"another rank", mute, func(r *rig) string {
			payload := testdata.Batch(t, 3, full)
			r.again(func(i int) { r.pub.Send("", uint64(i), payload) })
			return r.own()
		}, fewEvents, []string{"rank-mismatch"}, ""},
		{"lost batches", mute, func(r *rig) string {
			payload := testdata.Batch(t, nil, full)
			r.again(func(i int) { r.pub.Send("", uint64(i)*2, payload) })
			return r.own()
		}, fewEvents, []string{"events-lost"}, ""},
		{"an HTTP server at the event port", mute, func(r *rig) string { return fmt.Sprintf(", events: %q", "tcp://"+r.engine.Addr()) },
			aWhile, []string{"wrong-port"}, "an HTTP server"},
		{"a ROUTER at the event port", mute, func(r *rig) string { return fmt.Sprintf(", events: %q", "tcp://"+r.replay.Addr()) },
			aWhile, []string{"wrong-port"}, "a ROUTER socket"},
		{"nothing at the event port", mute, func(*rig) string { return fmt.Sprintf(", events: %q", "tcp://"+closed) }, aWhile, []string{"disconnected"}, ""},
		{"nothing at the replay port", mute, func(r *rig) string {
			r.publish(full)
			return fmt.Sprintf(", events: %q, replay: %q", "tcp://"+r.pub.Addr(), "tcp://"+closed)
		}, fewEvents, []string{"replay-dead"}, ""},
		{"a PUB socket at the replay port", mute, func(r *rig) string {
			r.publish(full)
			return fmt.Sprintf(", events: %q, replay: %q", "tcp://"+r.pub.Addr(), "tcp://"+r.pub.Addr())
		}, fewEvents, []string{"wrong-port"}, "a PUB socket"},
		{"ports that the engine does not name", sim.EngineOptions{}, func(r *rig) string { r.publish(full); return r.own() },
			fewEvents, []string{"events-differ", "replay-differ"}, ""},
		{"another engine than configured", sim.EngineOptions{}, func(*rig) string { return ", engine: sglang" },
			aWhile, []string{"engine-differs", "no-event-source", "no-event-sources"}, ""},
		{"a model that is not served", sim.EngineOptions{}, func(r *rig) string { r.request(); return ", model: other" }, fewEvents, []string{"model-not-served"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.engine)
			codes, report, _ := checked(t, append([]string{"--config", podsFile(t, r.entry("a", c.set(r)))}, c.until...)...)
			text, err := json.Marshal(report)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(codes, c.want) || !strings.Contains(string(text), c.say) {
				t.Errorf("codes %q, want %q, and %q in\n%s", codes, c.want, c.say, text)
			}
		})
	}
}

// TestTapCheckTopic: two pods with their event ports mixed up.
func TestTapCheckTopic(t *testing.T) {
	a, b := newRig(t, sim.EngineOptions{}), newRig(t, sim.EngineOptions{})
	a.request()
	b.request()
	events := func(r *rig) string {
		return fmt.Sprintf(", events: %q, replay: %q", r.engine.EventsEndpoint(), r.engine.ReplayEndpoint())
	}
	codes, _, _ := checked(t, "--config", podsFile(t, a.entry("a", events(b)), b.entry("b", events(a))), "-c", "20", "--for", "60s")
	slices.Sort(codes)
	codes = slices.Compact(codes)
	if !slices.Contains(codes, "topic-mismatch") || !slices.Contains(codes, "events-differ") {
		t.Errorf("codes %q", codes)
	}
}

// TestTapCheckSources: the same verdict live, from a recording, and of an endpoint
// without a configuration; and --expect.
func TestTapCheckSources(t *testing.T) {
	r := newRig(t, sim.EngineOptions{NoEvents: true})
	r.publish(testdata.Stored(uint64(1)<<60, nil, 0, "token_ids", []any{}))
	file := filepath.Join(t.TempDir(), "a.eptap")
	want := []string{"no-token-ids"}
	path := podsFile(t, r.entry("a", r.own()))
	if codes, _, _ := checked(t, append([]string{"--config", path, "--write", file}, fewEvents...)...); !slices.Equal(codes, want) {
		t.Errorf("live: %q", codes)
	}
	if codes, rep, _ := checked(t, "--read", file); !slices.Equal(codes, want) || len(rep.Facts) != 1 {
		t.Errorf("recording: %q, facts %v", codes, rep.Facts)
	}
	if codes, _, _ := checked(t, append([]string{"--connect", r.pub.Addr()}, fewEvents...)...); !slices.Equal(codes, want) {
		t.Errorf("endpoint: %q", codes)
	}
	if codes, rep, _ := checked(t, "--connect", r.engine.Addr(), "--for", "4s"); !slices.Equal(codes, []string{"wrong-port"}) {
		t.Errorf("HTTP endpoint: %q, %v", codes, rep)
	}
	t.Run("from serve", func(t *testing.T) {
		admin := "unix:" + filepath.Join(t.TempDir(), "a.sock")
		serve := exec.CommandContext(t.Context(), "eppctl", "serve", "--config", path, "--admin-addr", admin,
			"--ext-proc-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0")
		if err := serve.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = serve.Process.Kill(); _ = serve.Wait() })
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			if _, stderr, code := eppctl(t, "tap", "--from", "serve", "--addr", admin, "-q", "-c", "1", "--for", "60s"); code == 0 {
				break
			} else if code != 4 || time.Now().After(end) { // 4: it does not listen yet
				t.Fatalf("exit code %d: %s", code, stderr)
			}
		}
		if _, stderr, code := eppctl(t, "tap", "--check", "--from", "serve", "--addr", admin, "--pod", "nosuch"); code != 2 || !strings.Contains(stderr, "there are: a") {
			t.Errorf("an unknown pod: exit code %d: %s", code, stderr)
		}
		codes, rep, _ := checked(t, append([]string{"--from", "serve", "--addr", admin}, fewEvents...)...)
		if !slices.Equal(codes, want) || len(rep.Facts) != 1 {
			t.Errorf("%q, facts %v", codes, rep.Facts)
		}
		// Held against a configuration: its block size is compared, nothing is probed.
		if codes, rep, _ := checked(t, append([]string{"--from", "serve", "--addr", admin, "--config", path}, fewEvents...)...); !slices.Equal(codes, want) || rep.Pods != 1 {
			t.Errorf("with the configuration: %q, %d pods", codes, rep.Pods)
		}
	})
	t.Run("expect", func(t *testing.T) {
		for _, c := range []struct {
			expect string
			code   int
		}{{"events>0", 0}, {"gaps=0", 0}, {"stored >= 3", 0}, {"removed!=0", 3}, {"events<1", 3}, {"evnts>0", 2}, {"events", 2}, {"events>x", 2}} {
			_, stderr, code := eppctl(t, "tap", "-q", "--read", file, "--expect", c.expect)
			if code != c.code || code == 3 && !strings.Contains(stderr, "not as expected: "+c.expect) {
				t.Errorf("%s: exit code %d, want %d: %s", c.expect, code, c.code, stderr)
			}
		}
	})
	t.Run("pods", func(t *testing.T) {
		for _, c := range []struct {
			args []string
			code int
			say  string
		}{
			{[]string{"--read", file, "--pod", "nosuch"}, 2, "there are: a\n"},
			{[]string{"--read", file, "--pod", "a,nosuch"}, 2, "there are: a\n"},
			{[]string{"--connect", r.pub.Addr(), "--pod", "nosuch", "--for", "2s"}, 2, r.pub.Addr()},
			{[]string{"--read", file, "--not", "--pod", "a"}, 3, "1 warn"},
			{[]string{"--read", filepath.Join(t.TempDir(), "none.eptap")}, 2, "cannot read the recording"},
		} {
			stdout, stderr, code := eppctl(t, append([]string{"tap", "--check"}, c.args...)...)
			if code != c.code || !strings.Contains(stderr, c.say) || code != 3 && stdout != "" || strings.Contains(stdout, "no-token-ids") {
				t.Errorf("%q: exit code %d, want %d and %q\n%s%s", c.args, code, c.code, c.say, stdout, stderr)
			}
		}
	})
	t.Run("a dead port", func(t *testing.T) {
		stdout, stderr, code := eppctl(t, "tap", "--check", "--connect", testdata.Deaf(t), "--for", "2s", "--fail-on", "error")
		if code != 3 || !strings.Contains(stderr, "1 FAIL") || strings.Contains(stderr, "try: --fail-on") || strings.Contains(stdout, "ok ") {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
	})
	t.Run("refused together", func(t *testing.T) {
		for _, args := range [][]string{{"-o", "jsonl"}, {"--stats"}, {"--write", "-"}, {"--fail-on", "never"}} {
			if _, stderr, code := eppctl(t, append([]string{"tap", "--check", "--read", file}, args...)...); code != 2 {
				t.Errorf("%q: exit code %d: %s", args, code, stderr)
			}
		}
	})
}

// TestTapCheckLibzmq: a publisher of the real libzmq that sends no token ids, as a
// connector does.
func TestTapCheckLibzmq(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "python3", "-c", `
import msgpack, struct, time, zmq
s = zmq.Context().socket(zmq.PUB)
print(s.bind_to_random_port("tcp://127.0.0.1"), flush=True)
seq = 0
while True:
    e = {"type": "BlockStored", "block_hashes": [seq + 1], "parent_block_hash": None, "token_ids": [], "block_size": 0, "medium": "GPU"}
    s.send_multipart([b"", struct.pack(">Q", seq), msgpack.packb([time.time(), [e], 0])])
    seq += 1
    time.sleep(0.02)
`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var port int
	if _, err := fmt.Fscan(out, &port); err != nil {
		t.Fatalf("no port from python3 (make deps installs pyzmq): %v\n%s", err, &errs)
	}
	codes, _, _ := checked(t, append([]string{"--connect", fmt.Sprintf("127.0.0.1:%d", port)}, fewEvents...)...)
	if !slices.Equal(codes, []string{"no-token-ids"}) {
		t.Errorf("codes %q", codes)
	}
}
