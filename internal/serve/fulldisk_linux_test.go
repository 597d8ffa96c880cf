package serve

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/testdata"
)

// onSmallDisk is set in a process that has a disk of its own.
const onSmallDisk = "EPPCTL_TEST_SMALL_DISK"

// A disk that is full pauses the recording; with room it goes on by itself. Each turn is
// told once, and what is lost is counted and noted.
func TestRecordingSurvivesFullDisk(t *testing.T) {
	if os.Getenv(onSmallDisk) != "" {
		recordOnFullDisk(t)
		return
	}
	c := exec.Command(os.Args[0], "-test.run=^TestRecordingSurvivesFullDisk$", "-test.count=1")
	c.Env = append(os.Environ(), onSmallDisk+"=1")
	// Namespaces of its own: mounting needs no root there, and nobody else sees it.
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func recordOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	log := &testdata.Buffer{}
	r := newRig(t, rigOptions{options: Options{Log: slog.New(slog.NewTextHandler(log, nil))}})
	end := r.record(filepath.Join(dir, "a.eptap"), func(c *Config) { c.Decisions.RotateSize, c.Decisions.Keep = 64<<10, 100 })
	d := r.picker.decisions
	d.pause.first = 10 * time.Millisecond // the goroutine looks at it after a failure only
	routed := 0
	route := func() {
		r.route(completion("m", ids(routed, 64)))
		routed++
	}
	turns := func() (paused, resumed int) {
		return strings.Count(log.String(), "the recording cannot be written"), strings.Count(log.String(), "recorded again")
	}
	for turn := 1; turn <= 2; turn++ {
		for range 20 {
			route()
		}
		filler := filepath.Join(dir, "others")
		fill(t, filler)
		waitFor(t, "a failure", func() bool {
			route()
			paused, _ := turns()
			return paused == turn
		})
		for range 20 {
			route() // nobody waits, nothing is written
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the recording to go on", func() bool { _, resumed := turns(); return resumed == turn })
	}
	for range 20 {
		route()
	}
	end()
	if paused, resumed := turns(); paused != 2 || resumed != 2 {
		t.Errorf("%d pauses and %d resumptions are told\n%s", paused, resumed, log)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%v %v", files, err)
	}
	var records, dropped uint64
	for _, name := range files {
		x := readRecordedFile(t, name)
		records += uint64(len(x.decisions) + len(x.outcomes))
		dropped += x.dropped
		if len(x.fleets) == 0 && len(x.decisions)+len(x.outcomes) > 0 {
			t.Errorf("%s cannot be read alone", name)
		}
	}
	m := r.picker.met
	if records != m.recorded.Load() || dropped != m.unrecorded.Load() || records+dropped != uint64(2*routed) || dropped < 2*2*20 {
		t.Errorf("%d records and %d noted as lost of %d requests; counted are %d and %d", records, dropped, routed, m.recorded.Load(), m.unrecorded.Load())
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	last := readRecordedFile(t, filepath.Join(dir, "a.eptap"))
	if !last.whole || !slices.Equal([]uint64{last.account.Dropped, last.account.records()}, []uint64{dropped, records}) {
		t.Errorf("the account is %+v, of %d records and %d lost", last.account, records, dropped)
	}
}

// fill writes a file until there is no room for a byte.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4<<10))
	}
	if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, io.ErrShortWrite) {
		t.Fatal(err)
	}
}
