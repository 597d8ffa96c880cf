package native

import (
	"bytes"

	"github.com/eppctl/eppctl/internal/core/tokenizer/bpe"
)

// mergeLot is a lot of merges as read, whose parts are looked up together: the entries
// of 200,000 lie in no cache, and what a look waits for does not depend on the one before.
// Llama-3 and gpt-oss took 2 to 5 % less to load.
type mergeLot struct {
	text []byte   // of the parts, one behind the other
	ends []uint32 // of a left part, of the right one, and so on
	ids  []uint32
}

const mergesInLot = 256

// readMerges reads "left right" or ["left", "right"], in the order of rank.
func (m *modelFile) readMerges(s *scanner) {
	m.merges = make([]bpe.Merge, 0, 2*m.vocab.Count())
	var lot mergeLot
	s.elements(func() {
		left, right, header := readMerge(s)
		if header || s.err != nil {
			return
		}
		from := len(lot.text)
		var ok1, ok2 bool
		lot.text, ok1 = m.entry(lot.text, left)
		end := uint32(len(lot.text))
		lot.text, ok2 = m.entry(lot.text, right)
		if !ok1 || !ok2 { // of entries that no text becomes
			lot.text = lot.text[:from]
			return
		}
		lot.ends = append(lot.ends, end, uint32(len(lot.text)))
		if len(lot.ends) == 2*mergesInLot {
			m.addMerges(s, &lot)
		}
	})
	m.addMerges(s, &lot)
	m.merges = lastOfRepeated(m.merges, m.vocab.Len())
}

// readMerge reads a merge. header is the first line of a merges.txt, which is none: the
// engines pass over all strings that start as it does (tokenizers 0.23.3,
// models/bpe/model.rs, convert_merges_to_hashmap).
func readMerge(s *scanner) (left, right []byte, header bool) {
	if s.peek() == '[' {
		s.i++
		left = s.str(0)
		s.expect(',')
		right = s.str(1)
		s.expect(']')
		return left, right, false
	}
	text := s.str(0)
	if bytes.HasPrefix(text, versionHeader) {
		return nil, nil, true
	}
	left, right, ok := bytes.Cut(text, blank)
	if !ok {
		s.fail("merge without a blank")
	}
	return left, right, false
}

var (
	blank         = []byte(" ")
	versionHeader = []byte("#version")
)

// addMerges empties a lot.
func (m *modelFile) addMerges(s *scanner, lot *mergeLot) {
	if s.err != nil {
		return
	}
	lot.ids = m.vocab.FindAll(lot.ids[:0], lot.text, lot.ends)
	from := uint32(0)
	for i := 0; i < len(lot.ends); i += 2 {
		product, ok := m.vocab.FindNear(lot.text[from:lot.ends[i+1]])
		left, right := lot.ids[i], lot.ids[i+1]
		if !ok || left == bpe.None || right == bpe.None {
			s.fail("merge of what is not in the vocabulary")
			return
		}
		m.merges = append(m.merges, bpe.Merge{Left: left, Right: right, Product: product})
		from = lot.ends[i+1]
	}
	lot.text, lot.ends = lot.text[:0], lot.ends[:0]
}
