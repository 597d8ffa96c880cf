package pick

import (
	"math"

	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
)

// The kv term is affinity: the prefill seconds that the pod's cached blocks save
// against computing the whole prompt.

var kvTerm = term{
	name:   "kv",
	factor: func(p *Policy) *float64 { return &p.Alpha },
	inputs: kvInputs,
	zero:   kvZero,
}

func (b *basis) observeKV(r *Row) {
	r.Cached = r.Near // never both: a match needs ids
	if r.Match.Depth > 0 {
		r.Cached += b.reusable(&r.Match)
	}
	if r.asleep {
		r.Cached = 0 // a sleeping engine has dropped its blocks
	}
	r.Uncached = b.prompt - r.Cached
	if r.Prefill = b.cold; r.Cached > 0 {
		r.Prefill = b.computed(r.Cached)
	}
	r.Trust = b.trust(r)
}

// reusable is Match.reusable of the prompt, which divides by a size that nearly all
// pods have in common.
func (b *basis) reusable(m *Match) int {
	if m.Size != b.size {
		b.size, b.most = m.Size, (&Match{Size: m.Size, Depth: math.MaxInt32}).reusable(b.prompt)
	}
	return min(int(m.Depth)*int(m.Size), b.most)
}

// partialTrust is what a partial stream's blocks are worth beside a live one's.
// What was lost is gone from the index too, and what is in it was announced since,
// so nothing false is promised; but of two pods that promise the same, the one
// whose cache is known whole is the surer. Small, because a fleet without replay
// ports is partial for as long as its engines run.
const partialTrust = 0.9

// trust discounts what a pod is believed to hold while its event stream is not
// live: blocks it removed meanwhile still count. Blocks that are only expected
// need no events.
func (b *basis) trust(r *Row) float64 {
	switch {
	case r.Near > 0:
		return nearTrust
	case r.Match.Announced == 0:
		return 1
	case r.Sync.State == view.Partial:
		return max(partialTrust, b.policy.StaleTrust)
	case r.Sync.State == view.Live, r.Sync.State == view.NoEvents:
		return 1
	}
	return b.policy.StaleTrust
}

func kvCounts(*basis, *Row) bool { return true }

func kvSeconds(b *basis, r *Row) float64 {
	return r.Trust * b.policy.Alpha * (b.cold - r.Prefill)
}

func kvInputs(b *basis, r *Row) map[string]any {
	return map[string]any{
		"prompt_tokens":   b.prompt,
		"cached_tokens":   r.Cached,
		"uncached_tokens": r.Uncached,
		"cold_s":          number(b.cold),
		"prefill_s":       number(r.Prefill),
		"alpha":           number(b.policy.Alpha),
		"trust":           number(r.Trust),
	}
}

func kvZero(_ *basis, r *Row) reason.Code {
	if r.Cached == 0 {
		return r.Reason
	}
	return reason.NotTrusted
}
