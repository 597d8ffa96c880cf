package feed

import (
	"fmt"

	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
)

// state is what the fleet's view shows, the worst that applies. Where several do,
// the one that trusts what is held least comes first.
func (q *sequence) state(now int64) view.Sync {
	at := func(st view.SyncState, why reason.Code, detail string) view.Sync {
		return view.Sync{State: st, Why: why, Detail: detail, Connected: q.connected, Lost: q.lost}
	}
	switch {
	case !q.connected && now-q.parted >= int64(downAfter):
		return at(view.Down, q.whyApart(), q.cut)
	case !q.connected:
		return at(view.Connecting, q.whyApart(), q.cut)
	case q.open:
		s := at(view.Gap, reason.Missing, "")
		s.Missing = q.missing()
		return s
	case q.silent > 0:
		return at(view.Stale, reason.Silent, fmt.Sprintf("%d requests that must have caused events ended since the last one", q.silent))
	case q.garbled != reason.None && now-q.garbledAt >= int64(staleAfter):
		return at(view.Stale, q.garbled, q.garble)
	case q.history == nothing && q.replaying:
		return at(view.Syncing, reason.Replaying, "")
	case q.history == nothing:
		return at(view.Syncing, reason.NoEventsEver, q.failed)
	case !q.confirmed:
		return at(view.Syncing, reason.Unconfirmed, "no metrics page since the reconnect")
	case q.history == whole && q.replaying:
		return at(view.Syncing, reason.Replaying, "")
	case q.late > staleAfter:
		return at(view.Stale, reason.EventsLate, fmt.Sprintf("%.1f s later than the promptest", q.late.Seconds()))
	case q.history == partial && q.unread != reason.None:
		return at(view.Partial, q.unread, q.loss)
	case q.history == partial && q.mistrusted:
		return at(view.Partial, reason.ReplayMismatch, q.loss)
	case q.history == partial:
		return at(view.Partial, reason.HistoryLost, q.loss)
	}
	return at(view.Live, reason.None, "")
}

func (q *sequence) whyApart() reason.Code {
	if q.apart == reason.None {
		return reason.Starting
	}
	return q.apart
}

// missing counts the batches of the hole that is open.
func (q *sequence) missing() uint64 {
	end := q.live.seq + 1
	if q.replaying && q.until > 0 {
		end = q.until
	}
	return end - min(end, q.next())
}
