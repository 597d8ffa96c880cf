package pick

import (
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// The queue term is the time until the pod could begin with the request. Our own
// accounting says it without delay; a gauge of waiting requests only raises it,
// and only where it shows more than we had there ourselves at the time of the
// scrape. Read any other way a gauge is our own work once more, later and
// blurred, and pods just scraped would attract everything. An engine counts as
// waiting what it preempted as well, which has answered and waits no more for us:
// only a page with more requests than ours, waiting and running ones together,
// shows others.

var queueTerm = term{
	name:   "queue",
	setBy:  "its seconds count in full; prefill_tokens_per_second scales what the request itself takes",
	inputs: queueInputs,
	zero:   queueZero,
}

// observeQueue sets queue and depth. It needs the row's slow-down: the ledger
// counts real seconds, the terms speak of nominal ones, and the hardware term
// alone carries the difference.
func (b *basis) observeQueue(r *Row, s *telemetry.Brief) {
	r.Depth = r.Load.Depth
	r.Queue = over(seconds(r.Load.Queue), r.Slow)
	if s == nil || !s.Told(telemetry.HasWaiting) {
		return
	}
	if r.Telemetry == telemetry.Fresh {
		b.waiting = max(b.waiting, s.Waiting)
	}
	r.Alone = s.Told(telemetry.HasRunning) && s.Waiting+s.Running <= float64(r.Load.PlacedAtScrape)
	r.Foreign = s.Waiting > float64(r.Load.AtScrape) && !r.Alone
	if !b.policy.ScrapedLoad || !r.Foreign {
		return
	}
	waiting := min(s.Waiting, maxWaiting)
	since := over(seconds(r.Load.SinceWork), r.Slow)
	if q := over(waiting*b.mean+since, r.servers()); q > r.Queue {
		r.Queue = q
	}
	r.Depth = max(r.Depth, int(over(waiting+float64(r.Load.Since), r.servers())))
}

// fillQueue charges a pod that does not tell its queue with the longest of the
// fresh pods: requests of others may wait there as well, and a free queue would
// draw the traffic. The depth stays our own count, lest one overloaded pod opens
// the breaker of every pod without a page.
func (b *basis) fillQueue(r *Row) {
	if r.Waiting != &noValue || !b.policy.ScrapedLoad {
		return
	}
	r.Assumed = min(b.waiting, maxWaiting)
	if r.Assumed > float64(r.Load.Waiting) {
		r.Queue = max(r.Queue, r.Assumed*b.mean/r.servers())
	}
}

// over is x/n, where n is nearly always 1: each division waits for the one before.
func over(x, n float64) float64 {
	if n == 1 {
		return x
	}
	return x / n
}

// servers is how many ranks share what a page or a count of the whole pod shows.
func (r *Row) servers() float64 {
	if n := len(r.Pod.Members); n > 1 {
		return float64(n)
	}
	return 1
}

// meanPrefill is what a foreign request is taken to cost (mean): as ours did of
// late, and before the first of ours, as much as the present one.
func (b *basis) meanPrefill() float64 {
	if m := b.means.Prefill; m > 0 {
		return seconds(m)
	}
	return b.cold
}

// maxWaiting bounds a gauge from outside to what an int and a sum of seconds can
// take.
const maxWaiting = 1e6

// scrapedAt is the time of the scrape a pod's queue length stems from, now when
// there is none.
func (b *basis) scrapedAt(s *telemetry.Brief) int64 {
	if s == nil || !s.Told(telemetry.HasWaiting) {
		return b.now
	}
	return s.WaitingAt
}

func queueCounts(*basis, *Row) bool { return true }

func queueSeconds(_ *basis, r *Row) float64 { return -r.Queue }

func queueInputs(b *basis, r *Row) map[string]any {
	return map[string]any{
		"queue_s":        number(r.Queue),
		"local_s":        number(seconds(r.Load.Queue)),
		"waiting":        gauge(*r.Waiting),
		"waiting_age_ms": r.gaugeAge(b.now, r.Waiting),
		"waiting_taken":  positiveOrNull(r.Assumed),
		"waiting_ours":   r.Load.AtScrape,
		"foreign":        r.Foreign,
		"alone":          r.Alone,
		"since_scrape":   r.Load.Since,
		"since_scrape_s": number(seconds(r.Load.SinceWork)),
		"mean_prefill_s": number(b.mean),
	}
}

func queueZero(_ *basis, r *Row) reason.Code {
	if r.Depth > 0 {
		return reason.Overdue
	}
	return reason.Idle
}
