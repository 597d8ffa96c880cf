package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Request is one request of a workload.
type Request struct {
	At             float64 // seconds since the first
	Prompt, Output int     // tokens, at least 1
	// Blocks of the prompt, the last partly filled where the length says so. Equal
	// numbers mean equal prompts up to the end of that block.
	Blocks  []uint32
	Adapter string
}

// Workload is a list of requests in order of arrival.
type Workload struct {
	Name      string
	BlockSize int // tokens
	Requests  []Request
	Distinct  int // blocks are numbered 0 to Distinct-1
}

// Caps of what is read. The largest published trace of this kind, of which a window
// is replayed, has 10 million rows and prompts below a million tokens.
const (
	MaxRequests = 10_000_000
	MaxTokens   = 1 << 22              // of one prompt, and of one output
	MaxBlocks   = 1 << 26              // of all prompts together
	maxLine     = 4 << 20              // bytes
	MaxSeconds  = 10 * 366 * 24 * 3600 // until the last arrival
)

// numbers gives blocks their dense numbers. A number stands for a block and all
// that is before it, whatever a trace's own ids promise.
type numbers struct {
	known map[link]uint32
	count int
}

// link is a trace's id behind a block.
type link struct {
	parent uint32
	id     uint64
}

const noBlock = ^uint32(0)

// chain numbers a prompt's blocks from its trace's ids.
func (n *numbers) chain(ids []uint64) []uint32 {
	if n.known == nil {
		n.known = map[link]uint32{}
	}
	out := make([]uint32, len(ids))
	parent := noBlock
	for i, id := range ids {
		key := link{parent, id}
		x, ok := n.known[key]
		if !ok {
			x = uint32(n.count)
			n.count++
			n.known[key] = x
		}
		out[i], parent = x, x
	}
	return out
}

// fresh numbers count blocks that nobody else has.
func (n *numbers) fresh(dst []uint32, count int) []uint32 {
	for range count {
		dst = append(dst, uint32(n.count))
		n.count++
	}
	return dst
}

// blocksOf is how many blocks a prompt fills, the last partly.
func blocksOf(tokens, size int) int { return (tokens + size - 1) / size }

// Head returns the first n requests; 0 = all.
func (w *Workload) Head(n int) *Workload {
	if n <= 0 || n >= len(w.Requests) {
		return w
	}
	c := *w
	c.Requests = w.Requests[:n]
	return &c
}

// lastCell is how long the last group of equal times is taken to last: the grid of
// the Mooncake traces.
const lastCell = 3

// Spread returns the arrival times, in seconds. Where a trace has several requests
// at one time, which is a grid and no burst, they are spread evenly at random up to
// the next time.
func (w *Workload) Spread(seed uint64) []float64 {
	rnd := rand.New(rand.NewPCG(seed, 0x73707265))
	at := make([]float64, len(w.Requests))
	for i := 0; i < len(at); {
		begin, j := w.Requests[i].At, i
		for j < len(at) && w.Requests[j].At == begin {
			j++
		}
		at[i] = begin
		if j-i > 1 {
			width := float64(lastCell)
			if j < len(at) {
				width = w.Requests[j].At - begin
			}
			for k := i; k < j; k++ {
				at[k] = begin + width*rnd.Float64()
			}
			slices.Sort(at[i:j])
		}
		i = j
	}
	return at
}

// Stats describe a workload.
type Stats struct {
	Requests  int     `json:"requests"`
	Seconds   float64 `json:"seconds"`
	Prompt    float64 `json:"mean_prompt_tokens"`
	Output    float64 `json:"mean_output_tokens"`
	BlockRefs int     `json:"block_references"`
	Blocks    int     `json:"distinct_blocks"`
	// IdealHit is the share of block references that an unlimited shared cache
	// would have.
	IdealHit float64 `json:"ideal_hit"`
}

// Stats counts.
func (w *Workload) Stats() Stats {
	s := Stats{Requests: len(w.Requests)}
	seen := make([]bool, w.Distinct)
	for i := range w.Requests {
		r := &w.Requests[i]
		s.Prompt += float64(r.Prompt)
		s.Output += float64(r.Output)
		s.BlockRefs += len(r.Blocks)
		for _, b := range r.Blocks {
			if !seen[b] {
				seen[b] = true
				s.Blocks++
			}
		}
	}
	if n := float64(len(w.Requests)); n > 0 {
		s.Seconds = w.Requests[len(w.Requests)-1].At - w.Requests[0].At
		s.Prompt, s.Output = s.Prompt/n, s.Output/n
	}
	if s.BlockRefs > 0 {
		s.IdealHit = 1 - float64(s.Blocks)/float64(s.BlockRefs)
	}
	return s
}

// sorted orders requests by time, those of one time as they came, and starts the
// clock at the first.
func sorted(list []Request) []Request {
	slices.SortStableFunc(list, func(a, b Request) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	if len(list) > 0 {
		begin := list[0].At
		for i := range list {
			list[i].At -= begin
		}
	}
	return list
}

// LineError is a row of a trace that cannot be used.
type LineError struct {
	Trace string
	Line  int
	Why   string
}

func (e *LineError) Error() string { return fmt.Sprintf("%s: line %d: %s", e.Trace, e.Line, e.Why) }
