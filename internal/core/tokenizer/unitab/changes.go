package unitab

// Changes calls yield with each character of a normal form of s, until it returns
// false, and with what it is in the place of: 0 of one character of s, -n of one and
// the n behind it, 1 of none (it belongs to the one before). This is how
// unicode-normalization-alignments counts, whose numbers follow the characters when
// marks change places. s is valid UTF-8.
func (f Form) Changes(s string, yield func(r rune, change int) bool) {
	var seg segment
	for len(s) > 0 {
		n := f.quiet(s)
		for _, r := range s[:n] {
			if !yield(r, 0) {
				return
			}
		}
		s = s[n:]
		if n = f.loud(s); n > 0 {
			seg.work(f, s[:n])
			for _, c := range seg.chars {
				if !yield(c.r, int(c.change)) {
					return
				}
			}
			s = s[n:]
		}
	}
}
