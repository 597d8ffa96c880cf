package pick

import "github.com/eppctl/eppctl/internal/core/telemetry"

// The queue term is the time until the pod could begin with the request. Our own
// accounting says it without delay; a gauge of waiting requests only raises it,
// and only where it shows more than we had there ourselves at the time of the
// scrape. Read any other way a gauge is our own work once more, later and
// blurred, and pods just scraped would attract everything.

// observeQueue sets queue and depth. It needs the row's slow-down: the ledger
// counts real seconds, the terms speak of nominal ones, and the hardware term
// alone carries the difference.
func (b *basis) observeQueue(r *Row, s *telemetry.Sample) {
	r.Depth = r.Load.Waiting
	r.Queue = seconds(r.Load.Queue) / r.Slow
	if s == nil || !s.Waiting.Known {
		return
	}
	r.Waiting = s.Waiting
	if r.Telemetry == telemetry.Fresh {
		b.waiting = max(b.waiting, s.Waiting.V)
	}
	r.Foreign = s.Waiting.V > float64(r.Load.AtScrape)
	if !b.policy.ScrapedLoad || !r.Foreign {
		return
	}
	waiting := min(s.Waiting.V, maxWaiting)
	since := seconds(r.Load.SinceWork) / r.Slow
	r.Queue = max(r.Queue, waiting*b.meanPrefill()+since)
	r.Depth = max(r.Depth, int(waiting)+r.Load.Since)
}

// fillQueue charges a pod that does not tell its queue with the longest of the
// fresh pods: requests of others may wait there as well, and a free queue would
// draw the traffic. The depth stays our own count, lest one overloaded pod opens
// the breaker of every pod without a page.
func (b *basis) fillQueue(r *Row) {
	if r.Waiting.Known || !b.policy.ScrapedLoad {
		return
	}
	r.Assumed = min(b.waiting, maxWaiting)
	if r.Assumed > float64(r.Load.Waiting) {
		r.Queue = max(r.Queue, r.Assumed*b.meanPrefill())
	}
}

// meanPrefill is what a foreign request is taken to cost: as ours did of late,
// and before the first of ours, as much as the present one.
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
func (b *basis) scrapedAt(s *telemetry.Sample) int64 {
	switch {
	case s == nil || !s.Waiting.Known:
		return b.now
	case s.Waiting.At != 0:
		return s.Waiting.At
	}
	return s.At
}

func queueSeconds(_ *basis, r *Row) float64 { return -r.Queue }

func queueInputs(b *basis, r *Row) map[string]any {
	return map[string]any{
		"queue_s":        number(r.Queue),
		"local_s":        number(seconds(r.Load.Queue)),
		"waiting":        gauge(r.Waiting),
		"waiting_taken":  positiveOrNull(r.Assumed),
		"waiting_ours":   r.Load.AtScrape,
		"foreign":        r.Foreign,
		"since_scrape":   r.Load.Since,
		"since_scrape_s": number(seconds(r.Load.SinceWork)),
		"mean_prefill_s": number(b.meanPrefill()),
	}
}
