package affinity

import "github.com/eppctl/eppctl/internal/core/pod"

// holder is a pod in one of its lives: its number in the low bits, of its epoch
// as many as there is room for above. A pod that was removed and another that got
// its number differ. Zero is nobody.
type holder uint32

const idBits = 10 // pod.MaxMembers

func holderOf(p *pod.Pod) holder { return holder(p.Epoch)<<idBits | holder(p.ID) }

func (h holder) id() pod.ID { return pod.ID(h & (1<<idBits - 1)) }
