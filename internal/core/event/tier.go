package event

import "bytes"

// Tier is where a copy of a block lies, fastest first.
type Tier uint8

// The tiers, and TierAll for a Removed or Cleared event that means every one.
const (
	TierGPU Tier = iota
	TierHost
	TierDisk
	TierRemote
	NumTiers
	TierAll Tier = 255
)

func (t Tier) String() string {
	switch t {
	case TierGPU:
		return "gpu"
	case TierHost:
		return "host"
	case TierDisk:
		return "disk"
	case TierRemote:
		return "remote"
	case TierAll:
		return "all"
	}
	return "unknown"
}

// media maps the wire's words for a storage medium to tiers. Compared without
// regard to case: vLLM says "CPU", Mooncake "cpu".
var media = []struct {
	name   string
	tier   Tier
	shared bool
}{
	{"GPU", TierGPU, false},
	{"CPU", TierHost, false},        // vLLM offload, LMCache, ATOM, Mooncake
	{"CPU_PINNED", TierHost, false}, // SGLang HiCache
	{"CPU_TIER1", TierHost, false},  // Dynamo
	{"DISK", TierDisk, false},
	{"STORAGE", TierDisk, false},    // vLLM; remote when the locality says so
	{"EXTERNAL", TierRemote, false}, // SGLang
	{"REMOTE", TierRemote, false},   // ATOM
	{"level 0", TierGPU, false},     // cache levels of TensorRT-LLM, as PullDecoder names them
	{"level 1", TierHost, false},
	{"SHARED_STORAGE", TierRemote, true},
	{"OBJECT_STORE", TierRemote, true},
}

// Medium says on which tier a medium lies, whether the medium belongs to the
// whole fleet, and whether the word is known at all. An absent medium is the
// GPU; an unknown word is taken for the slowest tier, so that it can never make
// a pod look better than it is.
func Medium[T string | []byte](word T) (t Tier, shared, known bool) {
	if len(word) == 0 {
		return TierGPU, false, true
	}
	for _, m := range media {
		if len(word) == len(m.name) && bytes.EqualFold([]byte(word), []byte(m.name)) {
			return m.tier, m.shared, true
		}
	}
	return TierRemote, false, false
}
