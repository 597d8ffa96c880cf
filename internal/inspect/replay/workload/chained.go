package workload

import "fmt"

// Chained is a request whose full blocks are named by what is in them and before
// them, in the order of the prompt. What follows these is shared with nobody.
type Chained struct {
	At             float64 // seconds
	Prompt, Output int     // tokens
	IDs            []uint64
	Adapter        string
}

// FromChained makes a workload of blocks of a size.
func FromChained(name string, size int, list []Chained) (*Workload, error) {
	if size < 1 || len(list) > MaxRequests {
		return nil, fmt.Errorf("%s: %d requests in blocks of %d tokens: want at most %d, and a block of at least 1", name, len(list), size, MaxRequests)
	}
	var names numbers
	out, refs := make([]Request, len(list)), 0
	for i, c := range list {
		for _, n := range []int{c.Prompt, c.Output} {
			if why := tokens("a length", n); why != "" {
				return nil, fmt.Errorf("%s: request %d: %s", name, i, why)
			}
		}
		prompt := max(1, c.Prompt)
		n := blocksOf(prompt, size)
		if len(c.IDs) > n {
			return nil, fmt.Errorf("%s: request %d: %d blocks named, %d tokens fill %d of %d", name, i, len(c.IDs), prompt, n, size)
		}
		if refs += n; refs > MaxBlocks {
			return nil, fmt.Errorf("%s: more than %d blocks in all prompts together; use --requests", name, MaxBlocks)
		}
		out[i] = Request{At: c.At, Prompt: prompt, Output: max(1, c.Output), Adapter: c.Adapter}
		out[i].Blocks = names.fresh(names.chain(c.IDs), n-len(c.IDs))
	}
	return &Workload{Name: name, BlockSize: size, Requests: sorted(out), Distinct: names.count}, nil
}
