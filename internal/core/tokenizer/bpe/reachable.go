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
// For entries of more than shortMerge bytes all are kept.
func (m *Model) reachable(v *Vocab, merges []coded, sc *Scratch) []coded {
	last := make([]uint64, len(m.sym.token))
	out := make([]coded, 0, len(m.sym.token))
	for _, x := range merges {
		b := v.Bytes(m.sym.token[x.product])
		if len(b) > shortMerge {
			out = append(out, x)
			continue
		}
		if last[x.product] == 0 {
			last[x.product] = m.lastPair(b, sc)
		}
		if last[x.product] == pairKey(x.left, x.right)+1 {
			out = append(out, x)
		}
	}
	return out
}

// noLastPair is no pair.
const noLastPair = ^uint64(0)

// lastPair returns the key of the last two symbols that a piece comes to, plus one.
func (m *Model) lastPair(w []byte, sc *Scratch) uint64 {
	ids, codes := &sc.ids, &sc.codes
	for i, b := range w {
		ids[i] = m.sym.bytes[b]
		if i > 0 {
			codes[i-1] = m.pairs.code(ids[i-1], ids[i])
		}
	}
	if m.mergeShort(ids[:], codes[:], len(w), 2) != 2 {
		return noLastPair
	}
	return pairKey(ids[0], ids[1]) + 1
}
