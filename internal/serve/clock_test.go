package serve

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

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
