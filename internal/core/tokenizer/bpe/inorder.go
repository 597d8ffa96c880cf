package bpe

// inOrder finds which merges are due where the parts of each come before its product, as
// in most files: then bytes merge in the order of codes, and which pair of symbols comes
// to a product follows from the merges before it, without merging. gpt-oss took a sixth
// less to load than by reachable.
//
// The bytes of two symbols, to each of which its own come, come to the two unless a merge
// crosses the border between them. While the left one forms, the last of its symbols is
// first one, then another, and so is the first of the right one's: those that are there
// at the same time merge if their code is below that by which the left of them ends, and
// not above that by which the right one does, since of equal ones the leftmost is first.
// From the two whole symbols back to the bytes at the border these are a handful of pairs.
//
// Files made of ranks also have merges with a part that comes after the product: three
// blanks come after four. Such a merge is due as soon as its two symbols stand side by
// side. They never do if the product is made in another way, nor if a merge crosses the
// border between them. If they do, it is when the later part is made. Of what is not made
// by then nothing can be told: in Llama-3 of what stands behind 100,000 of 128,000.
type inOrder struct {
	until   uint32 // of this product and those behind it cannot be told whether they are made
	pairs   *pairTable
	due     []coded
	origins []origin // by symbol
	made    []bool   // by symbol: its bytes come to it
}

// told reports whether it is known by which merge a symbol's bytes come to it.
func (o *inOrder) told(symbol uint32) bool { return symbol < o.until && o.made[symbol] }

// origin is the merge by which the bytes of a symbol come to it, the last one; with code
// 0 it has none.
type origin struct{ left, right, code uint32 }

// newInOrder tells nothing (until 0) where codes do not name products or start symbols are
// not the bytes, as codes are in no order then, or bytes are not what symbols are made of.
func newInOrder(y *symbols, v *Vocab, merges []coded) *inOrder {
	if !y.direct || !y.startsAsBytes(v) {
		return &inOrder{}
	}
	n := len(y.token)
	o := &inOrder{uint32(n), emptyPairTable(n), make([]coded, 0, n), make([]origin, n), make([]bool, n)}
	for _, symbol := range y.bytes {
		o.made[symbol] = true
	}
	for _, x := range merges {
		if !o.made[x.product] && o.meets(x) {
			o.made[x.product] = true
			o.origins[x.product] = origin{x.left, x.right, x.code}
			o.pairs.add(x)
			o.due = append(o.due, x)
		}
	}
	for _, x := range merges {
		last := max(x.left, x.right)
		if last < x.product || o.made[x.product] {
			continue
		}
		if x.code = None; o.meets(x) { // it is due whenever the two stand side by side
			o.until = min(o.until, last)
		}
	}
	return o
}

// startsAsBytes reports whether the start symbols are the single bytes.
func (y *symbols) startsAsBytes(v *Vocab) bool {
	for b, symbol := range y.bytes {
		if string(v.Bytes(y.token[symbol])) != string([]byte{byte(b)}) {
			return false
		}
	}
	return true
}

// meets reports whether the two symbols of a merge ever stand side by side before its
// code is due. The merges of all lower codes are known.
func (o *inOrder) meets(x coded) bool {
	if !o.made[x.left] || !o.made[x.right] {
		return false
	}
	left, right := x.left, x.right
	leftEnds, rightEnds := x.code, x.code
	for {
		if c := o.pairs.code(left, right); c < leftEnds && c <= rightEnds {
			return false
		}
		a, b := &o.origins[left], &o.origins[right]
		switch {
		case a.code == 0 && b.code == 0:
			return true
		case a.code >= b.code: // the left one came later: before it was its right part
			left, leftEnds = a.right, a.code
		default:
			right, rightEnds = b.left, b.code
		}
	}
}
