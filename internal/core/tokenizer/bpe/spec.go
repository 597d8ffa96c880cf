// Package bpe encodes pieces of text by byte pair encoding: the pair of neighbours
// whose merge has the lowest rank is merged first, of equal ones the leftmost, until
// none is left.
//
// A Model is built once from a Spec and never written again; what a call writes is in
// its Scratch. Texts are valid UTF-8; others get some ids or other, but never a panic.
package bpe

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// None is no token, no symbol and no rank.
const None = ^uint32(0)

// Merge makes an entry of two.
type Merge struct{ Left, Right, Product uint32 }

// Spec is a vocabulary as its file gives it.
type Spec struct {
	Vocab *Vocab
	// Merges in the order of their rank, or
	Merges []Merge
	// the entries in the order of their rank, where any two neighbours that make an
	// entry may merge (rank files, SentencePiece). Merges of one product tie, and with
	// them those of entries that Ties says rank as the one before.
	Ranked []uint32
	Ties   []bool // nil: none
	// IgnoreMerges makes a piece that is an entry that entry, whatever the merges say.
	IgnoreMerges bool
	// Chars: a piece starts as characters, and those that are no entry as bytes;
	// else it starts as bytes.
	Chars bool
	// Bytes are the tokens of the 256 bytes; None where there is none.
	Bytes [256]uint32
	// Unknown stands for a start symbol without a token; None leaves it out.
	// FuseUnknown makes neighbouring ones one.
	Unknown     uint32
	FuseUnknown bool
}

// Limits of what the packed tables hold.
const (
	symbolBits = 18 // Gemma's 262 144 entries are the largest seen
	maxSymbols = 1 << symbolBits
	codeBits   = 25
	subBits    = codeBits - symbolBits // merges of one product; more than 2^7 need ranks instead of codes
	maxMerges  = 1<<codeBits - 1
)

// ErrPlain says why a vocabulary cannot have the fast tables. It is encoded by Plain.
var ErrPlain = errors.New("vocabulary does not fit the fast tables")

func (s *Spec) check() error {
	if s.Chars && s.IgnoreMerges {
		return fmt.Errorf("%w: ignore_merges asks for the whole text, which is cut", ErrPlain)
	}
	for b, id := range s.Bytes {
		if id == None {
			return fmt.Errorf("%w: byte %#02x has no token", ErrPlain, b)
		}
	}
	return nil
}

// pairs calls f for each merge in the order of rank. rank is the same for merges
// that tie.
func (s *Spec) pairs(f func(rank int, m Merge)) {
	for i, m := range s.Merges {
		f(i, m)
	}
	rank := -1
	for i, id := range s.Ranked {
		if s.Ties == nil || !s.Ties[i] {
			rank = i
		}
		b := s.Vocab.Bytes(id)
		for k := 1; k < len(b); k++ {
			if s.Chars && !utf8.RuneStart(b[k]) {
				continue
			}
			left, ok := s.Vocab.Find(b[:k])
			if !ok {
				continue
			}
			if right, ok := s.Vocab.Find(b[k:]); ok {
				f(rank, Merge{left, right, id})
			}
		}
	}
}

// list returns the merges in the order of rank, and the rank of each.
func (s *Spec) list() (list []Merge, ranks []uint32) {
	if s.Ranked == nil {
		ranks = makeHuge[uint32](len(s.Merges))
		for i := range ranks {
			ranks[i] = uint32(i)
		}
		return s.Merges, ranks
	}
	list = make([]Merge, 0, 2*len(s.Ranked))
	ranks = make([]uint32, 0, cap(list))
	s.pairs(func(rank int, m Merge) { list, ranks = append(list, m), append(ranks, uint32(rank)) })
	return list, ranks
}

// tiesWithNext reports whether the entry of a rank shares it with the next.
func (s *Spec) tiesWithNext(rank int) bool { return rank+1 < len(s.Ties) && s.Ties[rank+1] }
