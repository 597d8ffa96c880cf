package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// charsMap is SentencePiece's precompiled_charsmap: a double-array trie (darts-clone)
// of texts to be replaced, and what replaces them, each ended by a zero byte. As bytes:
// the size of the trie in bytes as u32, its units as u32, the replacements.
type charsMap struct {
	units []uint32
	texts string
}

// maxCharsMap is the largest that is read, in bytes. That of nmt_nfkc, the largest one
// that SentencePiece has beside its folding of case, has 240 kB.
const maxCharsMap = 4 << 20

var errCharsMap = errors.New("precompiled_charsmap is broken")

func readCharsMap(b []byte) (*charsMap, error) {
	if len(b) > maxCharsMap {
		return nil, fmt.Errorf("precompiled_charsmap of %d bytes: more than %d", len(b), maxCharsMap)
	}
	if len(b) < 4 {
		return nil, fmt.Errorf("%w: %d bytes", errCharsMap, len(b))
	}
	size := uint64(binary.LittleEndian.Uint32(b))
	if b = b[4:]; size == 0 || size%4 != 0 || size > uint64(len(b)) {
		return nil, fmt.Errorf("%w: a trie of %d bytes in %d", errCharsMap, size, len(b))
	}
	m := &charsMap{units: make([]uint32, size/4), texts: string(b[size:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	if !utf8.ValidString(m.texts) {
		return nil, fmt.Errorf("%w: replacements that are no UTF-8", errCharsMap)
	}
	return m, m.check()
}

// A unit holds the label of the edge that leads to it, how far its children are, and
// whether one of them, that of label 0, holds a value.
func isLeaf(unit uint32) bool { return unit>>8&1 == 1 }

func value(unit uint32) int { return int(unit & (1<<31 - 1)) }

func label(unit uint32) uint32 { return unit & (1<<31 | 0xFF) }

func offset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

// maxCharsMapEntry is the length of the longest text to be replaced, in bytes. Those of
// SentencePiece's own four maps have up to 12. Each character of a text costs a walk of that
// length, and one in a trie that leads back to itself would go on to the text's end:
// 128 kB took half a minute.
const maxCharsMapEntry = 254

// check walks over all that a text can reach, so that looking up needs no error.
func (m *charsMap) check() error {
	w := charsMapWalk{charsMap: m, heights: make([]uint8, len(m.units))}
	_, err := w.height(offset(m.units[0]), 0)
	return err
}

// charsMapWalk remembers the heights of nodes, plus one: a trie with equal ends has
// them once.
type charsMapWalk struct {
	*charsMap
	heights []uint8
}

// height is the length of the longest way down from a node, which is itself that deep.
func (w *charsMapWalk) height(node uint32, depth int) (h int, err error) {
	size := uint32(len(w.units))
	if node|0xFF >= size {
		return 0, fmt.Errorf("%w: an edge out of the trie", errCharsMap)
	}
	if known := int(w.heights[node]); known > 0 {
		h = known - 1
	}
	if depth+h > maxCharsMapEntry {
		return 0, fmt.Errorf("precompiled_charsmap: an entry of more than %d bytes", maxCharsMapEntry)
	}
	if w.heights[node] > 0 {
		return h, nil
	}
	for c := uint32(1); c < 0x100; c++ {
		unit := w.units[node^c]
		if label(unit) != c {
			continue
		}
		to := node ^ c ^ offset(unit)
		if isLeaf(unit) {
			if err := w.leaf(to); err != nil {
				return 0, err
			}
		}
		below, err := w.height(to, depth+1)
		if err != nil {
			return 0, err
		}
		h = max(h, below+1)
	}
	w.heights[node] = uint8(h + 1)
	return h, nil
}

func (w *charsMapWalk) leaf(at uint32) error {
	if at >= uint32(len(w.units)) {
		return fmt.Errorf("%w: a value out of the trie", errCharsMap)
	}
	if v := value(w.units[at]); v >= len(w.texts) || !utf8.RuneStart(w.texts[v]) {
		return fmt.Errorf("%w: a value that is no replacement", errCharsMap)
	}
	return nil
}

// prefixes calls f with the length of each entry that s begins with and the place of its
// replacement, the shortest first, until it returns false.
func (m *charsMap) prefixes(s string, f func(n, at int) bool) {
	node := offset(m.units[0])
	for i := range len(s) {
		c := uint32(s[i])
		if c == 0 {
			return
		}
		unit := m.units[node^c]
		if label(unit) != c {
			return
		}
		node ^= c ^ offset(unit)
		if isLeaf(unit) && !f(i+1, value(m.units[node])) {
			return
		}
	}
}

func (m *charsMap) text(at int) string {
	to, _, _ := strings.Cut(m.texts[at:], "\x00")
	return to
}

// shortest returns the replacement of the shortest entry that s begins with.
func (m *charsMap) shortest(s string) (to string, ok bool) {
	m.prefixes(s, func(_, at int) bool {
		to, ok = m.text(at), true
		return false
	})
	return to, ok
}

// longest returns the length and the replacement of the longest entry that s begins
// with, 0 if there is none.
func (m *charsMap) longest(s string) (n int, to string) {
	at := 0
	m.prefixes(s, func(size, place int) bool {
		n, at = size, place
		return true
	})
	if n > 0 {
		to = m.text(at)
	}
	return n, to
}
