package route

import "math"

// The rules of other routers, from their descriptions and sources at the versions
// that the registry names. Constants are their defaults.

// llmdBlend is llm-d's weighted sum: the share of the prompt matched, the least queue
// between the fewest and the most, and the free share of the KV pool.
type llmdBlend struct {
	queue, usage, prefix float64
	own                  bool // the queue is our own count, not the scraped one
}

func (x llmdBlend) costs(p *peer, r *Request, _ int64) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for i := range p.cost {
		p.cost[i] = x.depth(p, i)
		lo, hi = min(lo, p.cost[i]), max(hi, p.cost[i])
	}
	for i := range p.cost {
		short := 1.0
		if hi > lo {
			short = (hi - p.cost[i]) / (hi - lo)
		}
		matched := float64(p.match(i, r.Blocks)) / float64(len(r.Blocks))
		p.cost[i] = -(x.queue*short + x.usage*(1-p.pods[i].gauges.Usage) + x.prefix*matched)
	}
}

func (x llmdBlend) depth(p *peer, i int) float64 {
	if x.own {
		return float64(p.pods[i].waiting)
	}
	return float64(p.pods[i].gauges.Waiting)
}

// llmdSticky keeps to pods that hold 0.8 of the prompt unless their queues are 18 s
// longer than the others', and takes the fewest uncached tokens among those.
type llmdSticky struct{}

const (
	stickyShare = 0.8
	stickyGap   = 18 // s
)

func (llmdSticky) costs(p *peer, r *Request, _ int64) {
	warmest, coldest := math.Inf(1), math.Inf(1)
	warm := make([]bool, len(p.cost))
	for i := range p.cost {
		m := p.match(i, r.Blocks)
		wait := float64(p.pods[i].uncached) * p.fleet.Profile.PerToken
		if warm[i] = float64(m)/float64(len(r.Blocks)) >= stickyShare; warm[i] {
			warmest = min(warmest, wait)
		} else {
			coldest = min(coldest, wait)
		}
		p.cost[i] = float64(p.pods[i].uncached + p.uncached(r, m))
	}
	if math.IsInf(warmest, 1) || warmest-coldest > stickyGap {
		return
	}
	for i := range p.cost {
		if !warm[i] {
			p.cost[i] = math.Inf(1)
		}
	}
}

// dynamo adds the prefill blocks that a placement makes to the blocks that decode
// on the pod; lmetric multiplies them.
type dynamo struct{ lmetric bool }

func (x dynamo) costs(p *peer, r *Request, _ int64) {
	all := float64(len(r.Blocks))
	for i := range p.cost {
		a := &p.pods[i]
		prefill := max(0, float64(a.uncached)/float64(p.fleet.BlockSize)+all-float64(p.match(i, r.Blocks)))
		decode := float64(a.blocks) + all
		if x.lmetric {
			p.cost[i] = prefill * (decode + 1)
		} else {
			p.cost[i] = prefill + decode
		}
	}
}

// aibrix takes the longest match among pods that are not far above the mean load,
// and the least loaded when loads lie apart or nothing matches.
type aibrix struct{}

const aibrixSpread = 8

func (aibrix) costs(p *peer, r *Request, _ int64) {
	lo, hi, mean := p.inFlight()
	variance := 0.0
	for i := range p.cost {
		d := float64(p.pods[i].inFlight) - mean
		variance += d * d / float64(len(p.cost))
	}
	limit := mean + math.Sqrt(variance)
	found := false
	for i := range p.cost {
		n := float64(p.pods[i].inFlight)
		p.cost[i] = math.Inf(1)
		if m := p.match(i, r.Blocks); m > 0 && n <= limit && !p.pods[i].down {
			p.cost[i], found = n-1e6*float64(m), true
		}
	}
	if hi-lo > aibrixSpread || !found {
		leastInFlight{}.costs(p, r, 0)
	}
}

// inFlight is the least, the most and the mean of our requests per pod.
func (p *peer) inFlight() (lo, hi, mean float64) {
	lo = math.Inf(1)
	for i := range p.pods {
		n := float64(p.pods[i].inFlight)
		lo, hi, mean = min(lo, n), max(hi, n), mean+n/float64(len(p.pods))
	}
	return lo, hi, mean
}

// sglang takes the pod whose own history matches best if that is more than 0.3 of
// the prompt, else the one with the smallest tree; and the shortest queue when loads
// lie far apart.
type sglang struct{ trees []*history }

const (
	sglangShare  = 0.3
	sglangSpread = 64
	sglangRatio  = 1.5
)

func (x *sglang) costs(p *peer, r *Request, _ int64) {
	if lo, hi, _ := p.inFlight(); hi-lo > sglangSpread && hi > sglangRatio*lo {
		leastInFlight{}.costs(p, r, 0)
		return
	}
	best := 0
	for i, t := range x.trees {
		m := t.match(r.Blocks)
		best = max(best, m)
		p.cost[i] = -float64(m)
	}
	if float64(best)/float64(len(r.Blocks)) > sglangShare {
		return
	}
	for i, t := range x.trees {
		p.cost[i] = float64(t.len())
	}
}

func (x *sglang) matched(pod int, r *Request) int { return x.trees[pod].match(r.Blocks) }
func (x *sglang) placed(r *Request, pod int)      { x.trees[pod].touch(r.Blocks) }
func (x *sglang) down(pod int)                    { x.trees[pod] = newHistory(x.trees[pod].capacity) }

// minTTFT is Mooncake's: the least queue and prefill of its own.
type minTTFT struct{}

func (minTTFT) costs(p *peer, r *Request, now int64) {
	for i := range p.cost {
		p.cost[i] = p.queue(i, now) + p.prefill(r, p.match(i, r.Blocks))
	}
}
