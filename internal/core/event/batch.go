package event

// Batch is one decoded message. The zero value is ready for use; reuse it to
// decode without allocation.
type Batch struct {
	At     float64 // Unix seconds by the engine's clock; 0 = not said
	Rank   int     // data-parallel rank stated by the batch, -1 = not said
	Events []Event
	// Skipped lists the events of the batch that could not be read.
	Skipped []Skip
	// Unknown lists what was passed over because this decoder does not know it.
	Unknown []Unknown
	// Blocks per tier that the engine says it has; only TensorRT-LLM does, as
	// the first thing of its life.
	Blocks [NumTiers]int
	// Trailing is the number of bytes behind the batch.
	Trailing int

	// The arenas the events' slices point into. Growing one leaves the slices
	// made before on the old array, which is still theirs alone.
	tokens []uint32
	hashes []uint64
	extra  []uint64
}

// Skip is one event that was left out, and why.
type Skip struct {
	Index  int    // position in the batch
	Offset int    // byte offset in the payload
	Reason string // one of the Skip words below
	Tag    string // the tag, when there was one, cut at 64 bytes
	Before int    // how many of the batch's Events come before it
	// Removes is set when the event may have taken blocks away: it is a removal
	// or clear, or there is no telling what it is.
	Removes bool
}

// Why an event was skipped. The words are stable: they are metric labels.
const (
	SkipNotAnEvent   = "not-an-event"     // neither array, map nor bin
	SkipMalformed    = "malformed"        // a bin event whose inside does not parse
	SkipNoTag        = "no-tag"           // an empty array, a map without type
	SkipTagType      = "tag-type"         // the tag is no string
	SkipUnknownTag   = "unknown-tag"      // an event of another kind
	SkipNoHashes     = "no-hashes"        // stored or removed without block_hashes
	SkipHashType     = "hash-type"        // a hash that is nil, float, string or map
	SkipStringTokens = "string-tokens"    // TensorRT-LLM multimodal
	SkipTokenType    = "token-type"       // neither ids nor pairs of ids
	SkipTooMany      = "too-many"         // more hashes or tokens than the cap
	SkipFieldType    = "field-type"       // any other field of the wrong type
	SkipFieldRange   = "field-range"      // a negative size, a group beyond the cap
	SkipLongString   = "long-string"      // a name or salt beyond the cap
	SkipExtraAlign   = "extra-misaligned" // extra keys that cannot be told to blocks
)

func (b *Batch) reset() {
	b.At, b.Rank, b.Trailing = 0, -1, 0
	b.Events, b.Skipped, b.Unknown = b.Events[:0], b.Skipped[:0], b.Unknown[:0]
	b.Blocks = [NumTiers]int{}
	b.tokens, b.hashes, b.extra = b.tokens[:0], b.hashes[:0], b.extra[:0]
}
