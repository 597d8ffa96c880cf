package affinity

import "github.com/eppctl/eppctl/internal/core/pod"

// Result is caller-owned and reused. The zero value is ready.
type Result struct {
	depth []int32 // chunks, by pod.ID
	found []pod.ID
}

// Bytes is how much of the prompt's beginning a pod was given before.
func (r *Result) Bytes(id pod.ID) int {
	if int(id) >= len(r.depth) {
		return 0
	}
	return int(r.depth[id]) * ChunkBytes
}

func (r *Result) put(id pod.ID, depth int) {
	for int(id) >= len(r.depth) {
		r.depth = append(r.depth, 0)
	}
	if r.depth[id] == 0 {
		r.found = append(r.found, id)
	}
	r.depth[id] = int32(depth)
}

func (r *Result) reset() {
	for _, id := range r.found {
		r.depth[id] = 0
	}
	r.found = r.found[:0]
}
