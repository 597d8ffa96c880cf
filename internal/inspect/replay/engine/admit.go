package engine

// Headroom is how many blocks beyond a prompt's own must be had before it is
// admitted.
const Headroom = 2

// admit takes sequences from the queue, first come first served, while budget,
// room and the limit of sequences last. It returns them with their first chunks,
// and the seconds that fetching blocks and adapters adds to the step.
func (e *Engine) admit(budget int) (admitted []*Sequence, fetch float64) {
	for budget > 0 && len(e.running) < e.profile.MaxSequences {
		i := e.adapters.next(e.waiting)
		if i < 0 {
			break
		}
		s := e.waiting[i]
		t, ok := e.place(s)
		if !ok {
			break
		}
		e.waiting = append(e.waiting[:i], e.waiting[i+1:]...)
		if e.adapters.enter(s.Adapter) {
			t += e.profile.AdapterLoad
		}
		fetch += t
		s.chunk, s.decoding = min(s.Prompt-s.computed, budget), false
		budget -= s.chunk
		e.running = append(e.running, s)
		admitted = append(admitted, s)
	}
	return admitted, fetch
}

// place finds room for a sequence and refers to what is cached of it; false when
// there is no room.
func (e *Engine) place(s *Sequence) (fetch float64, ok bool) {
	p := e.pool
	have, idle := p.matched(s.Blocks)
	need := len(s.Blocks) - have
	if p.free()+p.idle.n-idle < need+Headroom {
		return 0, false
	}
	for _, id := range s.Blocks[:have] {
		p.hold(id)
	}
	s.shared = append(s.shared, s.Blocks[:have]...)
	slow := p.host.matched(s.Blocks[have:])
	p.reserve(need)
	for i := range slow {
		id := s.Blocks[have+i]
		s.shared = append(s.shared, id)
		if p.blocks[id] != nil { // behind one that the pool lacked
			p.hold(id)
			continue
		}
		p.add(id)
		p.out.stored(GPU, id, noParent, s.Adapter)
	}
	s.private = need - slow
	p.private += s.private
	s.computed = min((have+slow)*e.size, s.Prompt-1)
	if !s.answered {
		s.Cached = s.computed
	}
	if slow > 0 {
		fetch = e.profile.HostLatency + float64(slow*e.size)*e.profile.BytesPerToken/e.profile.HostBandwidth
	}
	return fetch, true
}
