package bpe

// InnerBlanks returns, for entries with a blank behind another character, what stands
// around those blanks. A blank that ends an entry stands before anything.
func InnerBlanks(v *Vocab) map[[2]byte]bool {
	keep := map[[2]byte]bool{}
	for id := range uint32(v.Len()) {
		b := v.Bytes(id)
		for i := 1; i < len(b); i++ {
			if b[i] != ' ' || b[i-1] == ' ' {
				continue
			}
			j := i
			for j < len(b) && b[j] == ' ' {
				j++
			}
			if j < len(b) {
				keep[[2]byte{b[i-1], b[j]}] = true
				continue
			}
			for next := range 256 {
				keep[[2]byte{b[i-1], byte(next)}] = true
			}
		}
	}
	return keep
}
