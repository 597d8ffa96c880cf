package pick

import "github.com/eppctl/eppctl/internal/core/telemetry"

// The pool term charges the pod's second server, its KV pool. A request takes
// the blocks it adds for its whole residence; (adds/size)·residence is that time
// of the pool, and φ/(1 - φ) the price of a server loaded to φ. A warm pod adds
// little, so sharing stays cheap exactly where memory is short.

// defaultBlock stands for the block a request's output begins, where neither the
// match nor the page tells the size: the default of vLLM.
const defaultBlock = 16

// observePool sets the pool's size and what the request adds. fillPool completes
// it once every pod's size has been seen.
func (b *basis) observePool(r *Row, s *telemetry.Sample) {
	block := r.Match.Size
	if s != nil && s.KVBlockSize.Known {
		size := s.KVBlockSize.V
		if block == 0 {
			block = int(min(max(size, 1), 1<<20))
		}
		if s.KVBlocks.Known {
			r.PoolSize = size * s.KVBlocks.V * float64(max(1, len(r.Pod.Members)))
		}
	}
	if block == 0 {
		block = defaultBlock
	}
	held := min(r.Match.Depth*r.Match.Size, b.prompt)
	if r.asleep {
		held = 0
	}
	r.PoolAdds = float64(b.prompt - held + block)
}

// fillPool sets φ. Usage counts here because it includes output and the requests
// of others, which our own accounting cannot see; the hit/miss estimate does not,
// since it says nothing about how full the pool is.
func (b *basis) fillPool(r *Row) {
	if r.PoolSize <= 0 {
		r.PoolSize, r.PoolHow = b.pool, b.poolHow
	}
	if r.PoolSize <= 0 {
		return
	}
	r.PoolShare = float64(r.Load.Held) / r.PoolSize
	if b.policy.ScrapedLoad && !r.estimated {
		r.PoolShare = max(r.PoolShare, r.Usage)
	}
	r.PoolShare = min(r.PoolShare, b.policy.PoolCap)
}

func poolSeconds(b *basis, r *Row) float64 {
	if r.PoolSize <= 0 || b.policy.Pool == 0 {
		return 0
	}
	taken := r.PoolAdds / r.PoolSize * seconds(b.means.Residence)
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
		"residence_s":  number(seconds(b.means.Residence)),
		"weight":       number(b.policy.Pool),
		"usage":        number(r.Usage),
		"usage_source": r.UsageHow.String(),
	}
}
