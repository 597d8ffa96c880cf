package bpe

import "unicode/utf8"

// Model encodes with tables. It may be used from any goroutine.
type Model struct {
	sym   *symbols
	pairs *pairTable
	sure  *sureTable // nil where pieces start as characters
	chars charTable
	words *wordTable
	// inside are the pairs of bytes that no cut may part.
	inside *bigrams
	whole  bool // pieces start as characters
}

// New builds the tables. The error wraps ErrPlain if the vocabulary does not fit
// them.
func New(s *Spec) (*Model, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	sym, merges, err := number(s)
	if err != nil {
		return nil, err
	}
	m := &Model{sym: sym, inside: newBigrams(s.Vocab), whole: s.Chars}
	sc := NewScratch()
	var made []bool
	if m.whole {
		m.pairs = newPairTable(merges)
		m.chars.wholeChars(m, s.Vocab)
	} else {
		m.pairs, merges, made = reachable(sym, s.Vocab, merges, sc)
		m.sure = newSureTable(sym, s.Vocab, merges)
	}
	var out []uint32
	m.words = newWordTable(s.Vocab, func(id uint32, b []byte) bool {
		if s.IgnoreMerges {
			return true
		}
		if symbol := sym.of[id]; made != nil && symbol != None && made[symbol] {
			return true
		}
		out = m.merge(b, sc, out[:0])
		return len(out) == 1 && out[0] == id
	})
	// The tables of characters last: they are small enough to be near when the first text
	// comes, and that of words is not.
	if !m.whole {
		m.chars.atoms(m, s.Vocab, merges, sc)
	}
	m.chars.joins(m, s.Vocab)
	sym.of = nil
	return m, nil
}

// merge encodes a piece from its start symbols on, with no short cut.
func (m *Model) merge(w []byte, sc *Scratch, out []uint32) []uint32 {
	if len(w) > shortMerge {
		return m.mergeLong(w, sc, out)
	}
	return m.mergeStretch(w, sc, out)
}

func (m *Model) mergeStretch(w []byte, sc *Scratch, out []uint32) []uint32 {
	if m.whole {
		return m.mergeChars(w, sc, out)
	}
	if len(w) > shortMerge {
		sc.nodes = sc.nodes[:0]
		for _, b := range w {
			sc.nodes = append(sc.nodes, node{id: m.sym.bytes[b]})
		}
		return m.mergeNodes(sc, out)
	}
	n := m.startBytes(w, sc)
	for i := range n - 1 {
		sc.codes[i&(shortMerge-1)] = m.pairs.code(sc.ids[i&(shortMerge-1)], sc.ids[(i+1)&(shortMerge-1)])
	}
	n = m.mergeShort(sc.ids[:], sc.codes[:], n, 1)
	return m.appendIDs(out, sc.ids[:n])
}

func (m *Model) mergeChars(w []byte, sc *Scratch, out []uint32) []uint32 {
	nodes := sc.nodes[:0]
	for i := 0; i < len(w); {
		r, n := rune(w[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(w[i:])
		}
		symbol, ok := m.chars.symbol(m, r)
		if ok && (r != utf8.RuneError || n > 1) {
			nodes = append(nodes, node{id: symbol})
		} else {
			for _, b := range w[i : i+n] {
				nodes = append(nodes, node{id: m.sym.bytes[b]})
			}
		}
		i += n
	}
	sc.nodes = nodes
	if len(nodes) > shortMerge {
		return m.mergeNodes(sc, out)
	}
	for i := range nodes {
		sc.ids[i] = nodes[i].id
		if i > 0 {
			sc.codes[i-1] = m.pairs.code(nodes[i-1].id, nodes[i].id)
		}
	}
	n := m.mergeShort(sc.ids[:], sc.codes[:], len(nodes), 1)
	return m.appendIDs(out, sc.ids[:n])
}

func (m *Model) appendIDs(out []uint32, symbols []uint32) []uint32 {
	for _, s := range symbols {
		out = append(out, m.sym.id(s))
	}
	return out
}
