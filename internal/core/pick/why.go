package pick

import (
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// why names the reason that a pod counts as holding nothing of the prompt. "The
// score is 0 and nothing says why" is the most frequent complaint about
// cache-aware routers. The order is that of cause: what explains everything else
// comes first.
func (c *Card) why(v *view.View, q *Query, r *Row, s *telemetry.Sample) reason.Code {
	if q.Unmatched != reason.None {
		return q.Unmatched
	}
	switch {
	case r.asleep:
		return reason.Asleep
	case s != nil && s.CacheOff:
		return reason.CacheOff
	case r.Sync.State == view.NoEvents:
		return reason.NoEventsSource
	case !r.Sync.Connected && r.Sync.State == view.Connecting:
		return reason.Disconnected
	case r.Sync.LastEvent == 0:
		return reason.NoEventsEver
	}
	size := r.Match.Size
	if size == 0 && len(r.Pod.Members) > 0 {
		size = v.Index.BlockSize(r.Pod.Members[0])
	}
	switch {
	case size > 0 && (c.basis.prompt-1)/size == 0: // the last block is computed again anyway
		return reason.PromptShort
	case size > 0 && q.Prompt.Cut >= 0 && q.Prompt.Cut < size:
		return reason.CutAtImage
	case r.Sync.Connected && r.Load.InFlight > 0 && q.Now-r.Sync.LastEvent > nanos(c.basis.policy.SilentAfter):
		return reason.Silent
	}
	return reason.NotCached
}
