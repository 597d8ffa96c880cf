// Package unigram encodes pieces of text by the most probable way to put them
// together from entries (Viterbi), as Hugging Face tokenizers and SentencePiece do.
package unigram

import (
	"context"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Piece is an entry; its id is its place in the list.
type Piece struct {
	Text  string
	Score float64 // log probability
}

// unknownPenalty is how much less than the least probable entry a character without
// one counts: a constant of SentencePiece.
const unknownPenalty = 10

// Model is immutable and may be used from any goroutine.
type Model struct {
	ids     map[string]uint32
	scores  []float64
	trie    trie
	unknown uint32
	missing float64  // score of an unknown character
	bytes   []uint32 // tokens of the 256 bytes, for what has no entry; nil: unknown
}

// New builds a model. unknown is the id of the entry for characters without one.
func New(pieces []Piece, unknown *uint32, byteFallback bool) (*Model, error) {
	if len(pieces) == 0 {
		return nil, errors.New("no entries")
	}
	m := &Model{ids: make(map[string]uint32, len(pieces)), missing: math.Inf(1)}
	for id, p := range pieces {
		if _, twice := m.ids[p.Text]; twice {
			return nil, fmt.Errorf("entry %q is given twice", p.Text)
		}
		m.ids[p.Text] = uint32(id)
		m.scores = append(m.scores, p.Score)
		m.missing = min(m.missing, p.Score)
		m.trie.add(p.Text, uint32(id))
	}
	m.missing -= unknownPenalty
	if unknown == nil || int(*unknown) >= len(pieces) {
		return nil, errors.New("no unk_id")
	}
	m.unknown = *unknown
	if byteFallback {
		m.bytes = make([]uint32, 256)
		for b := range m.bytes {
			id, ok := m.ids[fmt.Sprintf("<0x%02X>", b)]
			if !ok {
				return nil, fmt.Errorf("byte_fallback without an entry for byte %#02x", b)
			}
			m.bytes[b] = id
		}
	}
	return m, nil
}

// step is the best way to a position.
type step struct {
	score float64
	from  int32 // -1: none yet
	id    uint32
}

// charsPerLook is how many characters lie between two looks at the context: each costs
// a walk through the trie, some hundred nanoseconds.
const charsPerLook = 1 << 10

// Append appends the ids of a piece, unless ctx ends before.
func (m *Model) Append(ctx context.Context, out []uint32, s string) ([]uint32, error) {
	best := make([]step, len(s)+1)
	for i := 1; i <= len(s); i++ {
		best[i].from = -1
	}
	reach := func(from, to int, score float64, id uint32) {
		if x := &best[to]; x.from < 0 || score > x.score {
			*x = step{score, int32(from), id}
		}
	}
	for i, chars := 0, 1; i < len(s); chars++ {
		if chars%charsPerLook == 0 && ctx.Err() != nil {
			return out, ctx.Err()
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		alone := false
		m.trie.prefixes(s[i:], func(size int, id uint32) {
			reach(i, i+size, best[i].score+m.scores[id], id)
			alone = alone || size == n
		})
		if !alone {
			reach(i, i+n, best[i].score+m.missing, m.unknown)
		}
		i += n
	}
	return m.walk(out, s, best), nil
}

// walk goes back over the best way. Neighbouring unknown characters are one.
func (m *Model) walk(out []uint32, s string, best []step) []uint32 {
	type span struct{ from, to int }
	var way []span
	unknown := -1 // end of the run of unknown characters
	flush := func(from int) {
		if unknown >= 0 {
			way = append(way, span{from, unknown})
			unknown = -1
		}
	}
	for i := len(s); i > 0; {
		x := best[i]
		if x.id == m.unknown {
			if unknown < 0 {
				unknown = i
			}
		} else {
			flush(i)
			way = append(way, span{int(x.from), i})
		}
		i = int(x.from)
	}
	flush(0)
	for k := len(way) - 1; k >= 0; k-- {
		text := s[way[k].from:way[k].to]
		id, ok := m.ids[text]
		switch {
		case ok:
			out = append(out, id)
		case m.bytes != nil:
			for _, b := range []byte(text) {
				out = append(out, m.bytes[b])
			}
		default:
			out = append(out, m.unknown)
		}
	}
	return out
}

// trie finds the entries that a text starts with.
type trie struct {
	next map[uint64]uint32 // node << 8 | byte
	id   []uint32          // by node: entry + 1
}

func (t *trie) add(s string, id uint32) {
	if t.next == nil {
		t.next, t.id = map[uint64]uint32{}, []uint32{0}
	}
	node := uint32(0)
	for _, b := range []byte(s) {
		k := uint64(node)<<8 | uint64(b)
		to, ok := t.next[k]
		if !ok {
			to = uint32(len(t.id))
			t.id = append(t.id, 0)
			t.next[k] = to
		}
		node = to
	}
	t.id[node] = id + 1
}

func (t *trie) prefixes(s string, f func(size int, id uint32)) {
	node := uint32(0)
	for i := range len(s) {
		to, ok := t.next[uint64(node)<<8|uint64(s[i])]
		if !ok {
			return
		}
		node = to
		if id := t.id[node]; id != 0 {
			f(i+1, id-1)
		}
	}
}
