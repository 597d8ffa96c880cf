package pick

import (
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// The tier term is the time to bring blocks from a slower tier to the GPU.

var tierTerm = term{
	name:   "tier",
	setBy:  "it is set by tiers.host, .disk and .remote, each with .bandwidth and .latency",
	inputs: tierInputs,
	zero:   tierZero,
}

// observeTiers splits the cached tokens over the tiers. Expected blocks count as
// GPU. What the engine computes again although it has it is the end of the
// match, which is where engines offload first: it comes off the slowest tier.
func observeTiers(r *Row) {
	r.Fetched[event.TierGPU] = r.Cached
	if r.Match.Fastest[event.TierGPU] != r.Match.Announced { // seldom
		splitTiers(r)
	}
}

func splitTiers(r *Row) {
	m := &r.Match
	again := max(0, int(m.Announced)*int(m.Size)-r.Cached)
	for t := event.NumTiers - 1; t > event.TierGPU; t-- {
		n := int(m.Fastest[t]) * int(m.Size)
		cut := min(n, again)
		r.Fetched[t] = n - cut
		again -= cut
	}
	r.Fetched[event.TierGPU] = r.Cached - r.fetched()
}

// offGPU reports that some of the cached tokens are not on the GPU.
func (r *Row) offGPU() bool { return r.Fetched[event.TierGPU] != r.Cached }

// fetched counts the cached tokens that are not on the GPU.
func (r *Row) fetched() (n int) {
	for _, x := range r.Fetched[event.TierGPU+1:] {
		n += x
	}
	return n
}

func tierCounts(_ *basis, r *Row) bool { return r.offGPU() }

// tierSeconds is capped by what computing those tokens again would cost, so that
// a pod with slow copies never stands below one with none.
func tierSeconds(b *basis, r *Row) float64 {
	compute := b.computed(r.Cached-r.fetched()) - r.Prefill
	return -min(b.transfer(r), r.Trust*b.policy.Alpha*compute)
}

func (b *basis) transfer(r *Row) (seconds float64) {
	for t := event.TierGPU + 1; t < event.NumTiers; t++ {
		if n := r.Fetched[t]; n > 0 {
			l := b.policy.Tiers.link(t)
			seconds += l.Latency + float64(n)*b.cal.BytesPerToken/l.Bandwidth
		}
	}
	return seconds
}

func tierInputs(b *basis, r *Row) map[string]any {
	in := map[string]any{
		"transfer_s":         number(b.transfer(r)),
		"kv_bytes_per_token": number(b.cal.BytesPerToken),
	}
	for t := range event.NumTiers {
		in[t.String()+"_tokens"] = r.Fetched[t]
	}
	return in
}

func tierZero(_ *basis, r *Row) reason.Code {
	switch {
	case r.Cached == 0:
		return r.Reason
	case !r.offGPU():
		return reason.OnGPU
	case r.Trust == 0:
		return reason.NotTrusted
	}
	return reason.WeightZero // of what the copy saves, which caps the term, or of the link
}
