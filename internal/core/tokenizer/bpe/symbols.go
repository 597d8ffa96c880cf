package bpe

import (
	"slices"
	"unicode/utf8"
)

// symbols numbers the tokens that merging meets so that the number of a product
// grows with the rank of its merges: start symbols first, then products as the merges
// make them. A merge's code is then
//
//	product << subBits | number of the merge among those of its product
//
// one word that orders merges as their ranks do and names the product. Merges that
// tie have one code. Where codes would not grow with rank (merges of a product lie
// apart, or are too many), the code is the rank, and products has the product.
type symbols struct {
	token    []uint32 // by symbol
	offset   uint32   // token = symbol + offset if that holds for all, else None
	of       []uint32 // by token: symbol; only while the model is built
	products []uint32 // by rank; nil when codes name the product
	// tied finds the product of a pair whose code stands for several. Such a code has
	// a symbol of its own, which is no token.
	tied   map[uint64]uint32
	direct bool // codes name all products
	bytes  [256]uint32
}

// product is the symbol that two symbols make by the merge of a code. Small enough to
// be inlined, for the usual case.
func (y *symbols) product(code, left, right uint32) uint32 {
	if y.direct {
		return code >> subBits
	}
	return y.lookProduct(code, left, right)
}

func (y *symbols) lookProduct(code, left, right uint32) uint32 {
	if p, ok := y.tied[pairKey(left, right)]; ok {
		return p
	}
	if y.products != nil {
		return y.products[code]
	}
	return code >> subBits
}

func (y *symbols) id(symbol uint32) uint32 {
	if y.offset != None {
		return symbol + y.offset
	}
	return y.token[symbol]
}

func (y *symbols) add(id uint32) {
	if y.of[id] == None {
		y.of[id] = uint32(len(y.token))
		y.token = append(y.token, id)
	}
}

// coded is a merge in symbols.
type coded struct{ left, right, product, code uint32 }

// number builds the symbols and the merges in their terms.
func number(s *Spec) (*symbols, []coded, error) {
	y := &symbols{of: make([]uint32, s.Vocab.Len())}
	for i := range y.of {
		y.of[i] = None
	}
	starts := slices.Clone(s.Bytes[:])
	slices.Sort(starts) // so that the offset is usually constant
	for _, id := range starts {
		y.add(id)
	}
	if s.Chars {
		y.addChars(s.Vocab)
	}
	list, ranks := s.list()
	ties := map[uint32]uint32{} // rank of several products: symbol
	for i, m := range list {
		if rank := ranks[i]; s.tiesWithNext(int(rank)) {
			if _, known := ties[rank]; !known {
				ties[rank] = uint32(len(y.token))
				y.token = append(y.token, None)
			}
		}
		y.add(m.Product)
	}
	for _, m := range list { // parts that nothing makes
		y.add(m.Left)
		y.add(m.Right)
	}
	if len(y.token) > maxSymbols || len(list) > maxMerges {
		return nil, nil, ErrPlain
	}
	y.offset = y.token[0]
	for symbol, id := range y.token {
		if id != uint32(symbol)+y.offset {
			y.offset = None
			break
		}
	}
	for b, id := range s.Bytes {
		y.bytes[b] = y.of[id]
	}
	if s.Chars {
		for b := range byte(utf8.RuneSelf) {
			if id, ok := s.Vocab.Find([]byte{b}); ok {
				y.bytes[b] = y.of[id]
			}
		}
	}
	merges := y.code(list, ranks, ties)
	y.direct = y.products == nil && y.tied == nil
	return y, merges, nil
}

// addChars adds the entries of one character, ASCII first.
func (y *symbols) addChars(v *Vocab) {
	for b := range byte(utf8.RuneSelf) {
		if id, ok := v.Find([]byte{b}); ok {
			y.add(id)
		}
	}
	for id := range v.Len() {
		if b := v.Bytes(uint32(id)); len(b) > 1 && len(b) <= utf8.UTFMax {
			if _, n := utf8.DecodeRune(b); n == len(b) {
				y.add(uint32(id))
			}
		}
	}
}

func (y *symbols) code(list []Merge, ranks []uint32, ties map[uint32]uint32) []coded {
	out := makeHuge[coded](len(list))
	next := make([]uint8, len(y.token)) // number of merges of a product
	last := uint32(0)
	for i, m := range list {
		product := y.of[m.Product]
		out[i] = coded{y.of[m.Left], y.of[m.Right], product, last}
		group, tied := ties[ranks[i]]
		if tied {
			if y.tied == nil {
				y.tied = map[uint64]uint32{}
			}
			y.tied[pairKey(out[i].left, out[i].right)] = product
			product = group
		}
		if i > 0 && ranks[i] == ranks[i-1] {
			continue
		}
		code := product<<subBits | uint32(next[product])
		if i > 0 && code <= last || next[product] == 1<<subBits-1 {
			return y.codeByRank(list, ranks)
		}
		next[product]++
		out[i].code = code
		last = code
	}
	return out
}

func (y *symbols) codeByRank(list []Merge, ranks []uint32) []coded {
	out := make([]coded, len(list))
	y.products = make([]uint32, ranks[len(ranks)-1]+1)
	for i, m := range list {
		y.products[ranks[i]] = y.of[m.Product]
		out[i] = coded{y.of[m.Left], y.of[m.Right], y.of[m.Product], ranks[i]}
	}
	return out
}
