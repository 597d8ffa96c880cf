package event

import (
	"strconv"
	"testing"
)

// Names come from outside: the table is bounded, and what was in it is still
// found when it starts anew.
func TestInternerIsBounded(t *testing.T) {
	var names interner
	for i := range 3*4096 + 1 {
		name := strconv.Itoa(i)
		if got := names.get([]byte(name)); got != name {
			t.Fatalf("%q for %q", got, name)
		}
		if len(names.seen) > 4096 {
			t.Fatalf("%d names kept after %d", len(names.seen), i+1)
		}
	}
	if len(names.seen) != 1 {
		t.Errorf("%d names kept, the table was to start anew with the last", len(names.seen))
	}
}
