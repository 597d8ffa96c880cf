package native

import "errors"

// Bounds of what a tokenizer file may ask for. Files come from model repositories,
// so a hostile one must end as an error, when it is loaded or when a text is encoded.
const (
	// maxGrowth is how many times as long normalisers and steps may make a text. NFKC
	// makes 33 bytes of the 3 of U+FDFA, whose three blanks and a mark in front come
	// to 42; nothing seen makes more.
	maxGrowth = 16
	// maxComponents is the most normalisers, and the most steps of a pre-tokenizer:
	// far above what real files have (no survey), far below what costs anything.
	maxComponents = 64
	// maxSurround is the most ids before a text, and behind it, chosen likewise.
	maxSurround = 64
	// maxNested is how deep a component may nest, chosen likewise.
	maxNested = 64
)

var errGrowth = errors.New("it makes the text longer than any real one does")
