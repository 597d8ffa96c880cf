package pick

import "github.com/eppctl/eppctl/internal/core/view"

// The kv term is affinity: the prefill seconds that the pod's cached blocks save
// against computing the whole prompt.

func (b *basis) observeKV(r *Row) {
	r.Cached = r.Match.reusable(b.prompt)
	if r.asleep {
		r.Cached = 0 // a sleeping engine has dropped its blocks
	}
	r.Uncached = b.prompt - r.Cached
	r.Prefill = b.computed(r.Cached)
	r.Trust = b.trust(r)
}

// trust discounts what a pod is believed to hold while its event stream has a
// hole, since blocks it removed meanwhile still count. Partial is no hole: what
// was lost is gone from the index too, and what is in it was announced since.
// Blocks that are only expected need no events.
func (b *basis) trust(r *Row) float64 {
	switch r.Sync.State {
	case view.Gap, view.CatchingUp, view.Connecting:
		if r.Match.Announced > 0 {
			return b.policy.StaleTrust
		}
	}
	return 1
}

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
