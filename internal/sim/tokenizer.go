package sim

import (
	"unicode"
	"unicode/utf8"
)

// The simulator has a tokenizer of its own, which no real model uses: a piece
// is a run of letters and digits with the space before it, a run of white
// space, or one other character; its id is a hash of its bytes. It is
// deterministic, needs no vocabulary file, and texts that are joined at a word
// border give the ids of both parts, so an answer sent back as history hits the
// blocks that were filled while it was generated.
const (
	vocabSize = 1 << 17
	// A word longer than this is cut, as a subword vocabulary would.
	maxPiece = 12
)

// Special tokens stand outside the hashed range: text cannot produce them.
const (
	tokBOS uint32 = iota
	tokEnd
	tokSystem
	tokUser
	tokAssistant
	tokTool
	tokTools // before the tool definitions
	tokMedia // one part that is not text
	firstWord
)

// encode appends the ids of text, without special tokens, to dst.
func encode(dst []uint32, text string) []uint32 {
	for len(text) > 0 {
		n := pieceLen(text)
		dst = append(dst, pieceID(text[:n]))
		text = text[n:]
	}
	return dst
}

// pieceLen returns the length in bytes of the piece text starts with.
func pieceLen(text string) int {
	n := 0
	if text[0] == ' ' {
		n = 1
	}
	start := n
	for n < len(text) && n-start < maxPiece {
		r, size := utf8.DecodeRuneInString(text[n:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}
		n += size
	}
	if n > start {
		return n
	}
	if start == 1 { // a space with no word behind it stands alone
		return 1
	}
	_, size := utf8.DecodeRuneInString(text)
	return size
}

func pieceID(piece string) uint32 {
	h := uint32(2166136261) // FNV-1a
	for i := range len(piece) {
		h = (h ^ uint32(piece[i])) * 16777619
	}
	return firstWord + h%(vocabSize-firstWord)
}

func roleToken(role string) uint32 {
	switch role {
	case "system", "developer":
		return tokSystem
	case "assistant":
		return tokAssistant
	case "tool", "function":
		return tokTool
	}
	return tokUser
}
