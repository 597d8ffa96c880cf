package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim"
)

// Without a serve top follows the engines of a configuration: their metrics, events
// and caches are there, and nothing is made up of what a picker counts.
func TestTopFollowsEngines(t *testing.T) {
	fleet, err := sim.StartFleet(sim.FleetOptions{Engines: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer fleet.Close()
	const none = "127.0.0.1:0" // there is no serve
	config := filepath.Join(t.TempDir(), "eppctl.yaml")
	if err := os.WriteFile(config, []byte(fleet.Config(sim.Listen{ExtProc: none, Health: none, Admin: none, Metrics: none, EndpointsFile: "hosts.json"})), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		pods int
	}{{nil, 3}, {[]string{"--pod", "*-1"}, 1}} {
		cmd := &exec.Cmd{Path: os.Args[0], Args: append([]string{"eppctl", "top", "-o", "jsonl", "-i", "100ms", "--config", config}, tc.args...), Env: os.Environ(), Stderr: os.Stderr}
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		hang := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		var s view.Snapshot
		for frames := json.NewDecoder(pipe); !followed(&s, tc.pods); {
			s = view.Snapshot{}
			if err := frames.Decode(&s); err != nil {
				t.Fatalf("%v behind %+v", err, s)
			}
		}
		if s.Source != "engines" || s.Totals.Routed != 0 {
			t.Errorf("source %q, %d requests", s.Source, s.Totals.Routed)
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("an interrupted batch: %v", err)
		}
		hang.Stop()
	}
	if code, _, _ := eppctlRun("top", "--once", "--config", config, "--pod", "nobody"); code != exitUsage {
		t.Errorf("no such pod: exit code %d", code)
	}
	if code, _, _ := eppctlRun("top", "--once", "--config", config, "--addr", "127.0.0.1:1"); code != exitUsage {
		t.Errorf("engines and a serve: exit code %d", code)
	}
	if code, _, _ := eppctlRun("top", "--once", "--addr", "127.0.0.1:1"); code != exitUnreachable {
		t.Errorf("no serve: exit code %d", code)
	}
}

// followed reports that all there is of the pods is known.
func followed(s *view.Snapshot, pods int) bool {
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Telemetry.State != "fresh" || p.Telemetry.Waiting == nil || p.Ranks[0].Sync != "live" || p.Ranks[0].Events == nil {
			return false
		}
	}
	return len(s.Pods) == pods
}
