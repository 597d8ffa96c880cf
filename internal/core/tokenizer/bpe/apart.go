package bpe

import "unicode/utf8"

// A character that starts from bytes has neighbours that could join any of them, and
// would make one long stretch with those. Two rules keep it short.
//
// Parted: an entry that lies across the border of two characters holds both whole, or
// starts or ends inside one of the two, which makes it a fragment with this border. If
// none of either kind is in the piece, the border is a cut.
//
// Behind the blank that starts a piece. A blank and the first byte of a character are
// an entry of most vocabularies, and a fragment (see chars.go) of many characters. What
// becomes of the two is tried with each character when the model is built:
//
//   - Blank and character come to be (blankKeeps). Then no merge with the blank is due
//     before the character is whole, and the fragment harms nothing.
//   - The last symbol starts inside the character (blankBreaks). What ends at the
//     character's right border is a part of that symbol at any time before a merge
//     across the border. So the product of that merge would start inside the character;
//     if no such entry lies across the border where it stands, the border is a cut,
//     though other entries may hold the character and the next one.

// parted reports whether the border before w[i] between the characters a and b is a cut.
func (c *charTable) parted(w []byte, i int, a, b uint32) bool {
	if a|b >= noChar || a|b < utf8.RuneSelf || c.fragments.cross(w, i, true) || c.fragments.cross(w, i, false) {
		return false
	}
	return !c.paired(a, b)
}

// behindBlank reports whether a blank that starts the piece is right before w[i].
func behindBlank(w []byte, i int) bool { return i == 1 && w[0] == ' ' }

// endsWithBlank reports whether the right border of w[i:j] is a cut since a blank
// breaks the character.
func (c *charTable) endsWithBlank(w []byte, i, j int, x uint32) bool {
	return behindBlank(w, i) && x&blankBreaks != 0 && (j == len(w) || !c.fragments.cross(w, j, false))
}

// blanks tries the characters that a fragment may harm behind a blank.
func (c *charTable) blanks(m *Model, v *Vocab, sc *Scratch) {
	var out []uint32
	var room [1 + utf8.UTFMax]byte
	for r := range c.of {
		if c.of[r].info&headAtRisk == 0 {
			continue
		}
		text := utf8.AppendRune(append(room[:0], ' '), rune(r))
		out = m.merge(text, sc, out[:0])
		switch last := len(v.Bytes(out[len(out)-1])); {
		case last == len(text)-1:
			c.of[r].info |= blankKeeps
		case last < len(text)-1:
			c.of[r].info |= blankBreaks
		}
	}
}
