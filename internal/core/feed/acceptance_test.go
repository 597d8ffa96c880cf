package feed

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The cases ZF-01 to ZF-42 of the feed's acceptance list are sub-tests named by
// their ids, here and with the publisher that ZF-33 is about.
func TestEveryCaseIsNamed(t *testing.T) {
	var text strings.Builder
	for _, dir := range []string{".", "../../sim/zmtp"} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%v, %v", files, err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(b)
		}
	}
	for i := 1; i <= 42; i++ {
		if id := fmt.Sprintf("ZF-%02d", i); !strings.Contains(text.String(), `"`+id+" ") && !strings.Contains(text.String(), ", "+id+" ") {
			t.Errorf("no sub-test is named %s", id)
		}
	}
}
