package view

import (
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// Silent reports that nothing answers at a pod: its process died, or it hangs
// behind a kernel that still accepts connections, and a request sent there waits
// for a time limit. e is the pod's entry on the board.
//
// Where scrapes did work, as long as values count as known is the benefit of the
// doubt. Where they never did, a page that the engine does not have, or that
// stands elsewhere, must not look like a dead pod: the feed reports such failures
// as not mute, and a connected event stream speaks for the pod as well.
func (v *View) Silent(p *pod.Pod, e *telemetry.Entry, now int64, l telemetry.Limits) bool {
	switch {
	case !e.Mute:
		return false
	case e.Sample != nil:
		return e.State(now, l) == telemetry.Unknown
	}
	for _, m := range p.Members {
		if v.Sync.Get(m).Connected {
			return false
		}
	}
	return true
}
