package pick

import (
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// The pool term charges the pod's second server, its KV pool. A request takes
// the blocks it adds for its whole residence; (adds/size)·residence is that time
// of the pool, and φ/(1 - φ) the price of a server loaded to φ. A warm pod adds
// little, so sharing stays cheap exactly where memory is short.

var poolTerm = term{
	name:   "pool",
	factor: func(p *Policy) *float64 { return &p.Pool },
	inputs: poolInputs,
	zero:   poolZero,
}

// defaultBlock stands for the block a request's output begins, where neither the
// match nor the page tells the size: the default of vLLM.
const defaultBlock = 16

// observePool sets the pool's size and what the request adds. fillPool completes
// it once every pod's size has been seen.
func (b *basis) observePool(r *Row, s *telemetry.Brief) {
	block := int(r.Match.Size)
	if s != nil {
		r.PoolSize = s.Pool * r.servers()
		if block == 0 {
			block = int(s.Block)
		}
	}
	if r.PoolSize > 0 && (b.pool == 0 || r.PoolSize < b.pool) {
		b.pool, b.poolHow = r.PoolSize, FromOthers
	}
	if block == 0 {
		block = defaultBlock
	}
	held := min(r.Match.held()+r.Near, b.prompt)
	if r.asleep {
		held = 0
	}
	r.PoolAdds = float64(b.prompt - held + b.prompts*block)
}

// fillPool sets φ. Usage counts here while others may be on the pod, whose requests
// our own accounting cannot see. It does not where the page shows no request but
// ours: it includes their output then, which the residence charges already (b2b
// 2.77 s against 2.56 s, conv at 1.15 times the load 1.34 s against 1.20 s). The
// hit/miss estimate never does, since it says nothing about how full the pool is.
func (b *basis) fillPool(r *Row) {
	if r.PoolSize <= 0 {
		r.PoolSize, r.PoolHow = b.pool, b.poolHow
	}
	if r.PoolSize <= 0 {
		return
	}
	share := 0.0
	if r.Load.Held != 0 {
		share = float64(r.Load.Held) / r.PoolSize
	}
	if r.Usage > share && b.policy.ScrapedLoad && !r.estimated && !r.Alone {
		share = r.Usage
	}
	if share > b.policy.PoolCap {
		share = b.policy.PoolCap
	}
	r.PoolShare = share
}

// crowded reports that the engine may not admit the request at once: what is held,
// with output, and what the request adds come to more than the share of the pool
// that counts as all of it. Then its first byte waits for memory, not for prefill.
func (b *basis) crowded(r *Row) bool {
	if r.PoolSize <= 0 {
		return false
	}
	taken := float64(r.Load.Held) / r.PoolSize
	if r.UsageHow == FromPod && !r.estimated {
		taken = max(taken, r.Usage)
	}
	return taken+r.PoolAdds/r.PoolSize > b.policy.PoolCap
}

func poolCounts(*basis, *Row) bool { return true }

func poolSeconds(b *basis, r *Row) float64 {
	if r.PoolSize <= 0 || b.policy.Pool == 0 || r.PoolShare == 0 {
		return 0
	}
	taken := r.PoolAdds / r.PoolSize * b.stays
	return -b.policy.Pool * taken * r.PoolShare / (1 - r.PoolShare)
}

func poolInputs(b *basis, r *Row) map[string]any {
	return map[string]any{
		"adds_tokens":  number(r.PoolAdds),
		"pool_tokens":  positiveOrNull(r.PoolSize),
		"pool_source":  r.PoolHow.String(),
		"held_tokens":  r.Load.Held,
		"share":        number(r.PoolShare),
		"share_limit":  number(b.policy.PoolCap),
		"residence_s":  number(b.stays),
		"weight":       number(b.policy.Pool),
		"usage":        number(r.Usage),
		"usage_source": r.UsageHow.String(),
	}
}

func poolZero(b *basis, r *Row) reason.Code {
	switch {
	case r.PoolSize <= 0:
		return reason.PoolUnknown
	case b.means.Residence == 0:
		return reason.NoResidence
	}
	return reason.Idle
}
