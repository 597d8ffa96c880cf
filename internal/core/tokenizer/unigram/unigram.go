// Package unigram encodes pieces of text by the most probable way to put them
// together from entries (Viterbi), as Hugging Face tokenizers and SentencePiece do: the
// two count differently.
package unigram

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"unicode/utf8"
)

// Piece is an entry; its id is its place in the list.
type Piece struct {
	Text  string
	Score float64 // log probability
	// User: a piece of the user of SentencePiece, which counts more than any other.
	User bool
}

// unknownPenalty is how much less than the least probable entry a character without
// one counts: a constant of SentencePiece.
const unknownPenalty = 10

// Model is immutable and may be used from any goroutine.
type Model struct {
	ids     map[string]uint32 // nil: what is unknown is not looked up as a whole
	scores  []float64
	trie    trie
	unknown uint32
	missing float64  // score of an unknown character
	bytes   []uint32 // tokens of the 256 bytes, for what has no entry; nil: unknown
	single  bool     // the score of a way is kept in single precision
}

// New builds a model. unknown is the id of the entry for characters without one.
func New(pieces []Piece, unknown *uint32, byteFallback bool) (*Model, error) {
	if len(pieces) == 0 {
		return nil, errors.New("no entries")
	}
	m := &Model{ids: make(map[string]uint32, len(pieces)), missing: math.Inf(1)}
	list := make([]entry, 0, len(pieces))
	for id, p := range pieces {
		if _, twice := m.ids[p.Text]; twice {
			return nil, fmt.Errorf("entry %q is given twice", p.Text)
		}
		m.ids[p.Text] = uint32(id)
		m.scores = append(m.scores, p.Score)
		m.missing = min(m.missing, p.Score)
		list = append(list, entry{p.Text, uint32(id)})
	}
	var err error
	if m.trie, err = newTrie(list); err != nil {
		return nil, err
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

// span is a stretch of the best way, which is an entry.
type span struct {
	from, to int32
	id       uint32
}

// scratch is what a piece is worked out in.
type scratch struct {
	best []step // by position
	way  []span // from the end
}

// scratches are used again: pieces are words mostly, and three allocations for each took
// more than half of the time (180 English words in 53 µs, and now in 23: BenchmarkAppend).
var scratches = sync.Pool{New: func() any { return new(scratch) }}

// keptSteps bounds what stays of a long piece, in positions: a megabyte and a half.
const keptSteps = 1 << 16

func (x *scratch) done() {
	if cap(x.best) <= keptSteps {
		scratches.Put(x)
	}
}

// start makes room for a piece of n bytes, to whose positions no way leads yet.
func (x *scratch) start(n int) []step {
	x.best = slices.Grow(x.best[:0], n+1)[:n+1]
	x.best[0] = step{}
	for i := 1; i <= n; i++ {
		x.best[i] = step{from: -1}
	}
	return x.best
}

// kept is a score as it is kept.
func (m *Model) kept(score float64) float64 {
	if m.single {
		return float64(float32(score))
	}
	return score
}

// stepsPerLook is how many steps through the trie lie between two looks at the context,
// some hundred microseconds. Characters say nothing of the time: each takes as many
// steps as the longest entry that the text goes on with.
const stepsPerLook = 1 << 14

// Append appends the ids of a piece, unless ctx ends before.
func (m *Model) Append(ctx context.Context, out []uint32, s string) ([]uint32, error) {
	x := scratches.Get().(*scratch)
	defer x.done()
	best := x.start(len(s))
	reach := func(from, to int, score float64, id uint32) {
		if x := &best[to]; x.from < 0 || score > x.score {
			*x = step{score, int32(from), id}
		}
	}
	for i, steps := 0, 0; i < len(s); {
		if steps >= stepsPerLook {
			if steps = 0; ctx.Err() != nil {
				return out, ctx.Err()
			}
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		alone := false
		node, ok := uint32(0), true
		end := i
		for end < len(s) {
			if node, ok = m.trie.child(node, s[end]); !ok {
				break
			}
			end++
			if id, ok := m.trie.entry(node); ok {
				reach(i, end, m.kept(best[i].score+m.scores[id]), id)
				alone = alone || end == i+n
			}
		}
		steps += end - i + 1
		if !alone {
			reach(i, i+n, m.kept(best[i].score+m.missing), m.unknown)
		}
		i += n
	}
	return m.walk(out, s, x), nil
}

// walk goes back over the best way. Neighbouring unknown characters are one.
func (m *Model) walk(out []uint32, s string, x *scratch) []uint32 {
	way := x.way[:0]
	for i := int32(len(s)); i > 0; {
		at := x.best[i]
		if n := len(way); at.id == m.unknown && n > 0 && way[n-1].id == m.unknown {
			way[n-1].from = at.from
		} else {
			way = append(way, span{at.from, i, at.id})
		}
		i = at.from
	}
	x.way = way
	for _, w := range slices.Backward(way) {
		if w.id != m.unknown {
			out = append(out, w.id)
		} else {
			out = m.appendUnknown(out, s[w.from:w.to])
		}
	}
	return out
}

func (m *Model) appendUnknown(out []uint32, text string) []uint32 {
	if id, ok := m.ids[text]; ok {
		return append(out, id)
	}
	if m.bytes == nil {
		return append(out, m.unknown)
	}
	for i := range len(text) {
		out = append(out, m.bytes[text[i]])
	}
	return out
}
