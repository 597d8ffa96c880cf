package top

import (
	"testing"

	"github.com/eppctl/eppctl/internal/core/view"
)

// A pod that is well and not heard is told apart from one that is well, in the column
// that every screen has room for; a worse word stands above it.
func TestBlindPods(t *testing.T) {
	for _, c := range []struct{ state, sync, want string }{
		{"ok", "live", "ok"}, {"ok", "no-events", "ok"}, {"ok", "-", "ok"},
		{"ok", "connecting", "ok"}, {"ok", "syncing", "ok"}, {"ok", "gap(4)", "ok"}, {"ok", "partial", "ok"}, // they pass, or most still counts
		{"ok", "down", "blind"}, {"ok", "stale", "blind"},
		{"slow", "down", "blind"}, {"slow", "live", "slow"}, {"open", "stale", "open"}, {"down", "down", "down"},
	} {
		r := &podRow{PodState: &view.PodState{State: c.state}, sync: c.sync}
		if got := r.word(); got != c.want || stateRank(got) == len(states) {
			t.Errorf("%s with events %s is %q, want %q", c.state, c.sync, got, c.want)
		}
	}
}
