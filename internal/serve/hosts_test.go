package serve

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/testdata"
)

// A file that cannot be written is told once, in words that name it and what to
// do, and its recovery once; not ten times a second.
func TestUnwritableHostsFileIsToldOnce(t *testing.T) {
	r := newRig(t, rigOptions{})
	var log testdata.Buffer
	path := filepath.Join(t.TempDir(), "missing", "hosts.json")
	s := &server{fleet: r.fleet, hosts: &hostsFile{path: path, cluster: "pool"}, log: slog.New(slog.NewTextHandler(&log, nil))}
	lines := func(want ...string) {
		t.Helper()
		for range 20 {
			s.updateHosts()
		}
		got := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(got) != len(want) {
			t.Fatalf("%d lines, want %d:\n%s", len(got), len(want), log.String())
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("line %d is %s, want %s", i, got[i], want[i])
			}
		}
	}
	told := `hosts file ` + path + `: open: no such file or directory" hint="create the folder or set envoy.endpoints_file"`
	lines(told)
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	lines(told, "the hosts file is written again")
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	// The rename fails as well: a folder stands there.
	s.hosts.path = filepath.Dir(path)
	d := threePods()[0]
	d.Name, d.Address = "d", "10.0.0.9:8000"
	r.add(d)
	lines(told, "the hosts file is written again", "rename: ")
}

// A fleet that is gone leaves the hosts of before.
func TestHostsFileIsNeverEmptied(t *testing.T) {
	r := newRig(t, rigOptions{})
	h := &hostsFile{path: filepath.Join(t.TempDir(), "hosts.json"), cluster: "pool"}
	if err := h.update(r.fleet.Pods.Snapshot()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(h.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.fleet.Pods.Snapshot().Pods {
		r.fleet.Pods.Remove(p.ID)
	}
	if err := h.update(r.fleet.Pods.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(h.path); err != nil || string(after) != string(before) {
		t.Errorf("%v: %s", err, after)
	}
}

// A file that somebody removed is there again with the next look.
func TestHostsFileComesBack(t *testing.T) {
	r := newRig(t, rigOptions{})
	h := &hostsFile{path: filepath.Join(t.TempDir(), "hosts.json"), cluster: "pool"}
	for range 2 {
		if err := h.update(r.fleet.Pods.Snapshot()); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(h.path); err != nil {
			t.Fatal("after an update: ", err)
		}
	}
}
