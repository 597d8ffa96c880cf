// Package event turns the bytes an engine publishes about its KV cache into one
// normalised form. It chooses the layout by the bytes alone: no engine version
// is configured anywhere.
package event

// Kind says what happened.
type Kind uint8

// The kinds of events.
const (
	Stored  Kind = iota + 1
	Removed      // on TierAll: wherever the blocks are, the engine does not say
	Cleared
)

func (k Kind) String() string {
	switch k {
	case Stored:
		return "stored"
	case Removed:
		return "removed"
	case Cleared:
		return "cleared"
	}
	return "unknown"
}

// Event is one normalised KV event. Slices point into the Batch that holds the
// event and are valid until its next decode.
type Event struct {
	Kind Kind
	Tier Tier
	// Medium is the wire's own word for the tier ("" = absent); Shared is set
	// for what belongs to the whole fleet and to no pod: some media, and all that
	// Mooncake's master writes.
	Medium string
	Shared bool

	// Hashes are the engine's own block hashes, reduced to 64 bits; they are
	// aliases of blocks on one (member, group), never keys.
	Hashes    []uint64
	Parent    uint64
	HasParent bool // false = the first block hangs at the root
	// Tokens has len(Hashes)*BlockSize entries for a dense store, none for a
	// store that only names hashes (BlockSize 0). See Dense.
	Tokens    []uint32
	BlockSize int

	LoRA   string // adapter name, "" = base model
	LoRAID int64  // deprecated numeric id, -1 = absent; told when it changes, never used
	// Salt is the cache salt. vLLM states it on the first block of a prompt
	// only, SGLang on each salted store; HasSalt tells "stated" from "not said".
	Salt    string
	HasSalt bool
	// Extra has one entry (a block.Extra) per hash, or is empty when no block
	// has extra content.
	Extra []uint64

	Group    int    // KV cache group
	SpecKind string // kind of that group, "" = full attention
	Window   int    // sliding window in tokens, 0 = none
	// Locality and Ownership of storage tiers, as the wire states them.
	Locality, Ownership string
	// Layout is the wire layout this event had ("vllm/array12 (W7)", "mooncake":
	// README.md lists them) and HashForm the form of its first hash ("int",
	// "bin32"), for display.
	Layout, HashForm string
}

// FullAttention reports whether the event's cache group holds every block of a
// prompt, so that its stores build the trie.
func (e *Event) FullAttention() bool {
	switch e.SpecKind {
	case "", "full_attention", "mla_attention", "sink_full_attention":
		return true
	}
	return false
}

// Dense reports whether tokens and hashes align block by block.
func (e *Event) Dense() bool {
	return e.BlockSize > 0 && len(e.Hashes) > 0 && len(e.Tokens) == len(e.Hashes)*e.BlockSize
}
