package bpe

// reachable leaves out the merges whose two symbols never stand side by side. Files made
// of ranks have one merge for each way to part an entry: Llama-3 has 280,147 for 128,000
// entries, gpt-oss 446,189 for 200,000. Without the others the table of pairs takes a
// quarter, or half, of the memory, and what is asked of it comes from nearer.
//
// Two symbols side by side came to be by merges inside their own bytes alone, for none
// has crossed their borders, and in the order in which bytes that stand alone merge: of
// what is due everywhere, the first inside them is also the first of what is due inside
// them. So they are what the bytes of their product come to, alone, before the last
// merge: one pair for each product, if any.
//
// For entries of more than shortMerge bytes all are kept, but for those that have an entry
// of no bytes as a part: no text comes to it. It also returns a table of those that are
// left, and by symbol whether it was seen that its bytes come to it.
func reachable(y *symbols, v *Vocab, merges []coded, sc *Scratch) (pairs *pairTable, due []coded, made []bool) {
	o := newInOrder(y, v, merges)
	if int(o.until) == len(y.token) {
		return o.pairs, o.due, o.made
	}
	all := &Model{sym: y, pairs: newPairTable(merges)}
	last := make([]uint64, len(y.token))
	due, made = make([]coded, 0, len(y.token)), make([]bool, len(y.token))
	for _, x := range merges {
		b := v.Bytes(y.token[x.product])
		switch {
		case o.told(x.product):
			made[x.product] = true
			if o.origins[x.product] == (origin{x.left, x.right, x.code}) {
				due = append(due, x)
			}
			continue
		case len(b) > shortMerge:
			if left := len(v.Bytes(y.token[x.left])); left > 0 && left < len(b) {
				due = append(due, x)
			}
			continue
		}
		if last[x.product] == 0 {
			last[x.product] = all.lastPair(b, x.product, sc)
			made[x.product] = last[x.product] != noLastPair
		}
		if last[x.product] == pairKey(x.left, x.right)+1 {
			due = append(due, x)
		}
	}
	return newPairTable(due), due, made
}

// noLastPair is no pair.
const noLastPair = ^uint64(0)

// lastPair returns the key of the last two symbols that a piece comes to before it comes
// to the product, plus one.
func (m *Model) lastPair(w []byte, product uint32, sc *Scratch) uint64 {
	ids, codes := &sc.ids, &sc.codes
	for i, b := range w {
		ids[i] = m.sym.bytes[b]
		if i > 0 {
			codes[i-1] = m.pairs.code(ids[i-1], ids[i])
		}
	}
	if m.mergeShort(ids[:], codes[:], len(w), 2) != 2 || codes[0] == None || m.sym.product(codes[0], ids[0], ids[1]) != product {
		return noLastPair
	}
	return pairKey(ids[0], ids[1]) + 1
}
