package workload

import (
	"encoding/json"
	"fmt"
)

// hashed reads the JSON lines of Mooncake and of Bailian: a time, two lengths, and
// an id per block of the prompt.
type hashed struct {
	size  int     // tokens per block
	unit  float64 // seconds per unit of timestamp
	list  []Request
	names numbers
	refs  int
}

// newMooncake: kvcache-ai/Mooncake, FAST25-release: milliseconds, blocks of 512.
func newMooncake() reader { return &hashed{size: 512, unit: 1e-3} }

// newBailian: alibaba-edu/qwen-bailian-usagetraces-anon: seconds, blocks of 16. A
// turn's blocks begin with those of the turn before, so chat_id and
// parent_chat_id say nothing more.
func newBailian() reader { return &hashed{size: 16, unit: 1} }

func (h *hashed) row(line []byte) string {
	var x struct {
		Timestamp *float64 `json:"timestamp"`
		Input     *int     `json:"input_length"`
		Output    *int     `json:"output_length"`
		IDs       []uint64 `json:"hash_ids"`
	}
	if err := json.Unmarshal(line, &x); err != nil {
		return "no JSON object of a request: " + err.Error()
	}
	switch {
	case x.Timestamp == nil:
		return "timestamp is missing"
	case x.Input == nil:
		return "input_length is missing"
	case x.Output == nil:
		return "output_length is missing"
	}
	at := *x.Timestamp * h.unit
	if !(at >= 0 && at <= MaxSeconds) {
		return fmt.Sprintf("timestamp is %v, not within 0 and ten years", *x.Timestamp)
	}
	if why := tokens("input_length", *x.Input); why != "" {
		return why
	}
	if why := tokens("output_length", *x.Output); why != "" {
		return why
	}
	prompt := max(1, *x.Input)
	if got, want := len(x.IDs), blocksOf(prompt, h.size); got > want {
		return fmt.Sprintf("%d hash_ids for %d tokens, which fill %d blocks of %d", got, prompt, want, h.size)
	}
	if h.refs += blocksOf(prompt, h.size); h.refs > MaxBlocks {
		return fmt.Sprintf("more than %d blocks in all prompts together; use --requests", MaxBlocks)
	}
	ids := h.names.chain(x.IDs)
	ids = h.names.fresh(ids, blocksOf(prompt, h.size)-len(ids)) // some publishers leave out the unfilled block
	h.list = append(h.list, Request{At: at, Prompt: prompt, Output: max(1, *x.Output), Blocks: ids})
	return ""
}

func (h *hashed) done() *Workload {
	return &Workload{BlockSize: h.size, Requests: sorted(h.list), Distinct: h.names.count}
}
