package workload

import (
	"math/rand/v2"
	"slices"
)

// Pick is one holder of one conversation.
type Pick struct{ Conversation, Holder int }

// Draws are the random choices of the phases, made once so that every index is
// asked and told the same.
type Draws struct {
	Short, Long []int  // conversations to look up, by length
	Refresh     []Pick // whose last blocks a writer removes and stores again
	Evict       []Pick // whose tails a full cache evicts, and later gets back
	Decode      []Pick // who grows block by block
	Steps       []Pick // the same for many sequences of each rank, rank after rank
}

const (
	lookups   = 1 << 16
	refreshes = 1 << 16
	evictions = 2000
	decoders  = 256
	// perStep sequences of a rank fill a block in one step of its engine: of 256
	// that run, vLLM's default, one in Size.
	perStep = 16
)

// Batch is the largest number of events in one batch: what an engine says of one
// step. A prefill of 4,096 tokens into a full cache evicts as many blocks.
const Batch = 256

// Window is how many evictions lie between one and the return of its blocks.
const Window = 64

// Grown is the number of blocks each decoder gains.
const Grown = 64

// Draw makes the choices.
func (w *Workload) Draw() *Draws {
	d := &Draws{Short: w.lookups(Short), Long: w.lookups(Long)}
	r := rand.New(rand.NewPCG(5, 6))
	for range refreshes {
		d.Refresh = append(d.Refresh, w.pick(r))
	}
	r = rand.New(rand.NewPCG(3, 4))
	d.Evict = w.distinct(r, evictions, Window, Shared+1)
	d.Decode = w.distinct(r, decoders, decoders, Shared+Grown)
	d.Steps = w.steps(rand.New(rand.NewPCG(7, 8)))
	return d
}

// steps draws up to perStep picks of every rank and lists them rank after rank.
func (w *Workload) steps(r *rand.Rand) []Pick {
	var all, list []Pick
	for c := range w.Conversations {
		for h := range w.Conversations[c].Holders {
			all = append(all, Pick{c, h})
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	n := make([]int, w.Ranks)
	for _, p := range all {
		if h := w.Holder(p); h.GPU >= Shared+Grown && n[h.Rank] < perStep {
			n[h.Rank]++
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b Pick) int { return w.Holder(a).Rank - w.Holder(b).Rank })
	return list
}

func (w *Workload) lookups(blocks int) []int {
	var class []int
	for i := range w.Conversations {
		if w.Conversations[i].Blocks() == blocks {
			class = append(class, i)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	list := make([]int, lookups)
	for i := range list {
		list[i] = class[r.IntN(len(class))]
	}
	return list
}

func (w *Workload) pick(r *rand.Rand) Pick {
	c := r.IntN(len(w.Conversations))
	return Pick{c, r.IntN(len(w.Conversations[c].Holders))}
}

// distinct draws picks that hold at least so many blocks on the GPU and differ
// from the window of picks before them.
func (w *Workload) distinct(r *rand.Rand, n, window, least int) []Pick {
	var list []Pick
	recent := map[Pick]bool{}
	for len(list) < n {
		p := w.pick(r)
		if w.Holder(p).GPU < least || recent[p] {
			continue
		}
		list = append(list, p)
		recent[p] = true
		if i := len(list) - window; i > 0 {
			delete(recent, list[i-1])
		}
	}
	return list
}

// Holder is the holder a pick names.
func (w *Workload) Holder(p Pick) Holder { return w.Conversations[p.Conversation].Holders[p.Holder] }

// Tail is the blocks behind the shared ones that the picked holder has on its
// GPU: nobody else on that rank has them.
func (w *Workload) Tail(p Pick) Stretch {
	h := w.Holder(p)
	return Stretch{Conversation: &w.Conversations[p.Conversation], Rank: h.Rank, From: Shared, To: h.GPU}
}

// Last is the end of what the picked holder has on its GPU, up to 32 blocks and
// none of the shared ones; false if there is no such block.
func (w *Workload) Last(p Pick) (Stretch, bool) {
	s := w.Tail(p)
	s.From = max(Shared+Size, s.To-PerEvent)
	return s, s.From < s.To
}
