package unigram

import (
	"errors"
	"fmt"
	"math"
)

// userMalus is what is taken from the score of a piece of the user, a constant of
// SentencePiece.
const userMalus = 0.1

// NewSentencePiece builds a model that counts as SentencePiece does: scores of ways
// are kept in single precision, so that in long texts other ways tie. A piece without
// text is none that a text becomes. bytes are the tokens of the 256 bytes, for what has
// no piece; nil: it becomes unknown.
func NewSentencePiece(pieces []Piece, unknown uint32, bytes []uint32) (*Model, error) {
	m := &Model{scores: make([]float64, len(pieces)), unknown: unknown, bytes: bytes, single: true}
	// The library's first highest score is the least number above zero: it was meant
	// to be the least of all. So a piece of the user scores about -0.1, however long.
	lowest, highest := float32(math.Inf(1)), float32(0x1p-126)
	list := make([]entry, 0, len(pieces))
	seen := make(map[string]bool, len(pieces))
	for id, p := range pieces {
		switch {
		case p.Text == "":
			continue
		case seen[p.Text]:
			return nil, fmt.Errorf("piece %q is given twice", p.Text)
		}
		seen[p.Text] = true
		list = append(list, entry{p.Text, uint32(id)})
		if !p.User {
			m.scores[id] = float64(float32(p.Score))
			lowest, highest = min(lowest, float32(p.Score)), max(highest, float32(p.Score))
		}
	}
	if math.IsInf(float64(lowest), 0) || math.IsNaN(float64(lowest)) {
		return nil, errors.New("no pieces with a score")
	}
	var err error
	if m.trie, err = newTrie(list); err != nil {
		return nil, err
	}
	m.missing = float64(lowest - unknownPenalty)
	for id, p := range pieces {
		if p.User {
			m.scores[id] = float64(float32(len(p.Text))*highest) - userMalus
		}
	}
	return m, nil
}
