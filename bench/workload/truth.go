package workload

// Truth is what is right for one conversation and rank, by brute force.
type Truth struct{ GPU, Depth int } // blocks from the start on the GPU; on any tier

// Checked are the conversations whose depths are compared on every rank.
func (w *Workload) Checked() []int {
	list := make([]int, 300)
	for i := range list {
		list[i] = 37 * i % len(w.Conversations)
	}
	return list
}

// Truths returns Checked times Ranks depths, rank by rank within a conversation.
// It keeps a set of aliases per rank and tier and walks every prompt block by
// block: it shares no idea with any index.
func (w *Workload) Truths(host bool) []Truth {
	type set = map[uint64]struct{}
	gpu, below := make([]set, w.Ranks), make([]set, w.Ranks)
	for i := range gpu {
		gpu[i], below[i] = set{}, set{}
	}
	w.Stores(host, PerEvent, func(s *Stretch) {
		to := gpu[s.Rank]
		if s.Host {
			to = below[s.Rank]
		}
		for _, a := range s.Names() {
			to[a] = struct{}{}
		}
	})
	var list []Truth
	for _, i := range w.Checked() {
		for rank := range w.Ranks {
			var t Truth
			for n, a := range w.Conversations[i].Aliases {
				_, fast := gpu[rank][a]
				_, slow := below[rank][a]
				if !fast && !slow {
					break
				}
				t.Depth = n + 1
				if fast && t.GPU == n {
					t.GPU = n + 1
				}
			}
			list = append(list, t)
		}
	}
	return list
}
