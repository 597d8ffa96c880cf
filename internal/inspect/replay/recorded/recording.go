package recorded

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
)

// Recording is one model's decisions of a recording, in order of time.
type Recording struct {
	Name     string
	Model    string
	Requests []Request
	// Fleet is the last one: its weights are those in force.
	Fleet *recording.Fleet
	Pods  int // of the model, at most
	// BlockSize and PoolTokens are what most of its pods have; 0 = not told.
	BlockSize, PoolTokens int
	Refused               int // decisions for no pod
	OtherModels           int // decisions left out
	Dropped               uint64
	Weights               int // how often the weights changed
	Runs                  int // of serve
	Cut                   error
	Changed               []Changed // one per alternative
}

// Request is a decision that picked a pod, and what became of it.
type Request struct {
	At       int64 // ns since 1970
	Prompt   int   // tokens
	Exact    bool
	Blocks   []uint64 // of hashedTokens each
	Step     int      // tokens between two of Blocks
	Adapter  string
	Pod      string // that served it
	Believed int    // tokens that the picked pod was taken to hold
	Idle     bool   // nothing was before it there
	outcome  *recording.Outcome
}

// First is the time to the first byte in seconds, as far as it was seen.
func (r *Request) First() (seconds float64, seen bool) {
	if r.outcome == nil || r.outcome.FirstMs == nil {
		return 0, false
	}
	return *r.outcome.FirstMs / 1e3, true
}

// Cached is the tokens that the engine had, by its own word or else by what it was
// taken to hold.
func (r *Request) Cached() int {
	n := r.Believed
	if r.outcome != nil && r.outcome.Cached != nil {
		n = *r.outcome.Cached
	}
	return min(n, r.Prompt)
}

// Output is the length of the answer, as far as it was seen.
func (r *Request) Output() (tokens int, seen bool) {
	if r.outcome == nil || r.outcome.Output == nil {
		return 0, false
	}
	return *r.outcome.Output, true
}

// unseenOutput stands for the length of answers of which none was seen: the mean of
// the Mooncake conversation trace.
const unseenOutput = 343

// meanOutput is the mean length of the answers that were seen.
func (r *Recording) meanOutput() (mean, seen int) {
	sum := 0
	for i := range r.Requests {
		if n, ok := r.Requests[i].Output(); ok {
			sum += n
			seen++
		}
	}
	if seen == 0 {
		return unseenOutput, 0
	}
	return max(1, sum/seen), seen
}

// blockTokens is the size of the blocks that are simulated: the engines', where the
// recorded hashes allow it.
func (r *Recording) blockTokens() int {
	step := r.Fleet.BlockTokens
	if r.BlockSize > step && r.BlockSize%step == 0 {
		return r.BlockSize
	}
	return step
}

// Workload is what came, as requests to play. fits says which lengths a pod can
// take; the others are left out, and their number returned.
func (r *Recording) Workload(fits func(blockSize, prompt, output int) bool) (w *workload.Workload, misfits int, err error) {
	size := r.blockTokens()
	mean, _ := r.meanOutput()
	var list []workload.Chained
	for i := range r.Requests {
		x := &r.Requests[i]
		c := workload.Chained{At: float64(uint64(x.At-r.Requests[0].At)) / 1e9, Prompt: x.Prompt, Output: mean, Adapter: x.Adapter}
		if n, seen := x.Output(); seen {
			c.Output = n
		}
		if c.Prompt > workload.MaxTokens || c.Output > workload.MaxTokens || !fits(size, c.Prompt, c.Output) {
			misfits++
			continue
		}
		if size%x.Step == 0 {
			for k := size / x.Step; k <= len(x.Blocks); k += size / x.Step {
				c.IDs = append(c.IDs, x.Blocks[k-1])
			}
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, misfits, fmt.Errorf("%s: none of %d requests fits a pod's KV pool; see --kv-pool-tokens", r.Name, len(r.Requests))
	}
	w, err = workload.FromChained(r.Name, size, list)
	return w, misfits, err
}

// Adapters reports whether any request is for a LoRA adapter.
func (r *Recording) Adapters() bool {
	return slices.ContainsFunc(r.Requests, func(x Request) bool { return x.Adapter != "" })
}

// Notes say in words what is to be known of a recording beside its numbers.
func (r *Recording) Notes() (list []string) {
	add := func(n int, format string, args ...any) {
		if n > 0 {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	n := len(r.Requests)
	unhashed := 0
	for i := range r.Requests {
		if x := &r.Requests[i]; !x.Exact {
			unhashed++
		}
	}
	mean, seen := r.meanOutput()
	add(unhashed, "%d of %d prompts had no token ids: their length is an estimate, and nothing of them is shared", unhashed, n)
	add(n-seen, "the lengths of %d of %d answers were not seen: taken as %d tokens, %s", n-seen, n, mean,
		map[bool]string{true: "the mean of the others", false: "the mean of the Mooncake conversation trace"}[seen > 0])
	if seen == 0 && n > 0 {
		list = append(list, "an answer's length stands in its body, which serve is shown by an Envoy configured so: eppctl envoy-config --response-body streamed")
	}
	add(r.OtherModels, "%d decisions for other models than %q are left out; --model chooses", r.OtherModels, r.Model)
	add(r.Refused, "%d requests were refused, and are left out", r.Refused)
	add(int(r.Dropped), "%d records were dropped while recording", r.Dropped)
	add(r.Weights, "the weights changed %d times: the last are the recorded ones", r.Weights)
	add(r.Runs-1, "%d runs of serve: no prefix is known to be shared between two of them", r.Runs)
	if r.Cut != nil {
		list = append(list, fmt.Sprintf("%v: what is before that is used", r.Cut))
	}
	return list
}

// most is the value above 0 that occurs most often, the least of equals.
func most(values []int) int {
	count := map[int]int{}
	for _, v := range values {
		if v > 0 {
			count[v]++
		}
	}
	best := 0
	for v, n := range count {
		if best == 0 || cmp.Or(cmp.Compare(n, count[best]), cmp.Compare(best, v)) > 0 {
			best = v
		}
	}
	return best
}
