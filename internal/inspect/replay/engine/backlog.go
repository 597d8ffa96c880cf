package engine

// Marks is what Backlog works with: it is made once for all engines, for a number
// of distinct blocks.
type Marks struct {
	stamp []uint32
	now   uint32
}

// NewMarks returns marks for blocks numbered 0 to distinct-1.
func NewMarks(distinct int) *Marks { return &Marks{stamp: make([]uint32, distinct)} }

func (m *Marks) set(ids []uint32) {
	for _, id := range ids {
		m.stamp[id] = m.now
	}
}

// Backlog is when a prompt would have its first token if it came now and nothing
// after it: all that is running and waiting, one prefill after another, with true
// cache hits, those that earlier ones in the queue will leave included; and the
// steps' fixed cost. own is the prompt's prefill time in that. No router can know
// this much.
func (e *Engine) Backlog(prompt int, blocks []uint32, m *Marks) (total, own float64) {
	m.now++
	p := &e.profile
	decodes := 0.0
	for _, s := range e.running {
		if s.prefilled() {
			decodes += float64(s.context())
		} else {
			total += p.Prefill(s.Prompt-s.computed, s.computed)
		}
		m.set(s.Blocks)
	}
	for _, s := range e.waiting {
		total += e.behind(s.Prompt, s.Blocks, m)
		m.set(s.Blocks)
	}
	own = e.behind(prompt, blocks, m)
	total += own
	steps := 1 + total/(float64(p.StepTokens)*p.PerToken)
	total += steps * (p.Base + decodes*p.PerContext)
	return e.slow * total, e.slow * own
}

// behind is the prefill time of a prompt behind what is in the pool or marked.
func (e *Engine) behind(prompt int, blocks []uint32, m *Marks) float64 {
	k := 0
	for k < len(blocks) && (m.stamp[blocks[k]] == m.now || e.pool.blocks[blocks[k]] != nil) {
		k++
	}
	u := max(prompt-k*e.size, 1)
	return e.profile.Prefill(u, prompt-u)
}

// Cached is how many leading blocks are in the pool.
func (e *Engine) Cached(blocks []uint32) int {
	n, _ := e.pool.matched(blocks)
	return n
}
