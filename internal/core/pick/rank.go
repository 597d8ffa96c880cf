package pick

import (
	"strconv"

	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// A pod of several data-parallel ranks is that many servers with a cache each. The
// request names the rank it is for, where the engine listens to that: the one with
// the deepest match as long as that saves more than its queue costs, else the
// idlest one. Where the engine chooses, nobody knows which cache it will be.

// observeRank settles which rank of its pod a row is about. It needs the row's
// trust and prefill.
func (b *basis) observeRank(v *view.View, r *Row, s *telemetry.Brief) {
	if len(r.Pod.Members) < 2 {
		r.Rank = int(r.Match.Rank)
		return
	}
	b.chooseRank(v, r, s)
}

// chooseRank is for a pod of several.
func (b *basis) chooseRank(v *view.View, r *Row, s *telemetry.Brief) {
	if !r.Pod.Spec.Engine.TakesRank() {
		r.Rank, r.RankWhy = -1, reason.RankByEngine
		if r.Match.Rank >= 0 {
			v.Load.Read(r.Pod, b.now, b.scrapedAt(s), -1, &r.Load)
			b.observeSpeed(r)
		}
		r.shareTrust()
		return
	}
	r.shareTrust()
	if r.Rank = r.Load.Rank; r.Match.Rank < 0 {
		return
	}
	var idle view.Load
	v.Load.Read(r.Pod, b.now, b.scrapedAt(s), -1, &idle)
	full := r.Load.Depth >= b.policy.Breaker.Depth && idle.Depth < b.policy.Breaker.Depth
	if waits := seconds(r.Load.Queue - idle.Queue); full || waits > kvSeconds(b, r) {
		r.Match = Match{Rank: -1}
		r.Load, r.Rank, r.RankWhy = idle, idle.Rank, reason.RankBusy
		b.observeSpeed(r)
		b.observeKV(r)
	}
}

// shareTrust is for what is known of one rank, or of bytes sent to the pod, while
// the rank that gets the request is not.
func (r *Row) shareTrust() {
	if ranks := len(r.Pod.Members); ranks > 1 && (r.Near > 0 || r.RankWhy == reason.RankByEngine && r.Match.Rank >= 0) {
		r.Trust /= float64(ranks)
	}
}

// settleRank chooses among equally idle ranks of the winner: by rendezvous, as
// among pods, lest the first rank's cache gets everything that is cold.
func (c *Card) settleRank(v *view.View) {
	r := c.WinnerRow()
	if len(r.Pod.Members) < 2 || r.Rank < 0 || r.Match.Rank >= 0 {
		return
	}
	c.ranks = v.Load.Idlest(r.Pod, c.Now, c.ranks[:0])
	var most uint64
	for _, rank := range c.ranks {
		var w uint64
		c.key = strconv.AppendInt(append(append(c.key[:0], c.RequestID...), 0), int64(rank), 10)
		if w = weigh(append(c.key, r.Pod.Target...)); w >= most {
			most, r.Rank = w, rank
		}
	}
}
