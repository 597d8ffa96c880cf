package serve

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/feed"
)

// What is compared with the feed's stamps is read off the feed's clock: a step of
// the wall clock would age every sample, or keep it fresh.
func TestOneClock(t *testing.T) {
	r := newRig(t, rigOptions{})
	if reflect.ValueOf(r.picker.clock).Pointer() != reflect.ValueOf(feed.Clock).Pointer() {
		t.Error("the picker has another clock than the feed")
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "_test.go") && bytes.Contains(text, []byte("time.Now().Unix")) {
			t.Errorf("%s takes wall time as a number", name)
		}
	}
}

func TestWallTimeIsForDisplay(t *testing.T) {
	begun := time.Unix(1_000_000, 0)
	stamp := begun.Add(90 * time.Second).UnixNano()
	for step, want := range map[time.Duration]time.Duration{
		0: 0, 3 * time.Microsecond: 0, -900 * time.Millisecond: 0,
		time.Hour + 5*time.Microsecond: time.Hour, -time.Hour - 5*time.Microsecond: -time.Hour,
	} {
		clock := begun.Add(100 * time.Second)
		if got := shifted(stamp, clock.Add(step), clock); !got.Equal(begun.Add(90*time.Second+want)) || got.Location() != time.UTC {
			t.Errorf("step %v: %v", step, got)
		}
	}
	now := time.Now() // with a monotonic reading, which must not count
	if got := shifted(now.UnixNano(), now.Round(0).Add(time.Hour), now); got.Sub(now.Round(0)) != time.Hour {
		t.Errorf("a step of an hour moves a stamp by %v", got.Sub(now.Round(0)))
	}
	// Twice asked, the same answer.
	r := newRig(t, rigOptions{})
	r.route(completion("m", ids(1, 64)), requestIDHeader, "x")
	a, _, _ := r.picker.ring.find("x")
	b, _, _ := r.picker.ring.find("x")
	if list, _ := r.picker.ring.recent("", 1); a.At != b.At || list[0].At[:19] != a.At[:19] {
		t.Errorf("%s, %s, %s", a.At, b.At, list[0].At)
	}
}
