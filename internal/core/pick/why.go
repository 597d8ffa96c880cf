package pick

import (
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// why names the reason that a pod counts as holding nothing of the prompt, or of any of
// several. "The
// score is 0 and nothing says why" is the most frequent complaint about
// cache-aware routers. The order is that of cause: what explains everything else
// comes first.
func (c *Card) why(v *view.View, q *Query, r *Row, s *telemetry.Brief) reason.Code {
	if q.Unmatched != reason.None {
		return q.Unmatched
	}
	switch {
	case r.asleep:
		return reason.Asleep
	case r.RankWhy == reason.RankBusy:
		return reason.RankBusy
	case s != nil && s.Told(telemetry.HasCacheOff):
		return reason.CacheOff
	case r.Sync.State == view.NoEvents:
		return reason.NoEventsSource
	case !r.Sync.Connected:
		return reason.Disconnected
	}
	switch r.Sync.Why {
	case reason.Silent, reason.WrongFraming, reason.Undecodable, reason.EventsSkipped:
		return r.Sync.Why
	}
	if r.Sync.LastEvent == 0 && toldSize(v, r) == 0 { // a size without an event is that of a replayed history
		return reason.NoEventsEver
	}
	if b := &c.basis; b.longest > b.largest && (q.Prompt.Cut < 0 || q.Prompt.Cut >= b.largest) {
		return whyGone(v, q, r) // whatever the size of the pod's blocks
	}
	size := toldSize(v, r)
	switch {
	case c.basis.longest <= size: // the last block is computed again anyway
		return reason.PromptShort
	case size > 0 && q.Prompt.Cut >= 0 && q.Prompt.Cut < size:
		return reason.CutAtImage
	}
	return whyGone(v, q, r)
}

// whyGone tells a prompt that was there until the engine emptied its cache from one
// that its events never stored, or removed.
func whyGone(v *view.View, q *Query, r *Row) reason.Code {
	for _, m := range r.Pod.Members {
		at, lost := v.Index.Lost(m, &q.Prompt)
		for i := 0; i < len(q.Further) && !lost; i++ {
			at, lost = v.Index.Lost(m, &q.Further[i])
		}
		if lost {
			r.Cleared = at
			return reason.Cleared
		}
	}
	return reason.NotCached
}

// toldSize is the pod's tokens per block, 0 before an event, live or replayed, told.
func toldSize(v *view.View, r *Row) int {
	if r.Match.Size == 0 && len(r.Pod.Members) > 0 {
		return v.Index.BlockSize(r.Pod.Members[0])
	}
	return int(r.Match.Size)
}
