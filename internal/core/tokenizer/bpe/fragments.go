package bpe

import "unicode/utf8"

// fragment is an entry that ends or starts inside a character, cut at that
// character's border.
type fragment struct {
	left, right string
	code        uint32 // lowest code of a merge that makes it
	head        bool   // ends inside the character to the right; else starts inside the one to the left
}

// fragments are found by the low six bits of the two bytes at the border. They are few
// (hundreds). Those that can form before the character they break are first looked for
// with a mask: near has the low six bits of the bytes that may follow those two.
type fragments struct {
	near  [1 << 12]uint64
	group [1 << 12]uint16 // place in lists
	lists [][]fragment    // the first is empty
}

func borderKey(left, right byte) uint16 { return uint16(left&63)<<6 | uint16(right&63) }

func appendFragments(all []fragment, b []byte, code uint32) []fragment {
	lead := 0
	for lead < len(b) && !utf8.RuneStart(b[lead]) {
		lead++
	}
	if lead > 0 && lead < len(b) {
		all = append(all, fragment{string(b[:lead]), string(b[lead:]), code, false})
	}
	last := len(b) - 1
	for last > 0 && !utf8.RuneStart(b[last]) {
		last--
	}
	if last > 0 && !utf8.FullRune(b[last:]) {
		all = append(all, fragment{string(b[:last]), string(b[last:]), code, true})
	}
	return all
}

// build marks the atoms that have to fear a fragment, and in near those fragments.
func (f *fragments) build(c *charTable, all []fragment) {
	heads, tails := map[string][]int{}, map[string][]int{} // by the part of a character
	for i, x := range all {
		if x.head {
			heads[x.right] = append(heads[x.right], i)
		} else {
			tails[x.left] = append(tails[x.left], i)
		}
	}
	harmful := make([]bool, len(all))
	var room [utf8.UTFMax]byte
	for r := rune(utf8.RuneSelf); r < plane; r++ {
		x := &c.of[r].info
		if *x&isAtom == 0 {
			continue
		}
		n := utf8.EncodeRune(room[:], r)
		formed := c.formed[*x&symbolMask]
		for k := 1; k < n; k++ {
			for _, i := range heads[string(room[:k])] {
				if all[i].code <= formed {
					*x |= headAtRisk
					harmful[i] = true
				}
			}
			for _, i := range tails[string(room[k:n])] {
				if all[i].code <= formed {
					*x |= tailAtRisk
					harmful[i] = true
				}
			}
		}
	}
	f.lists = make([][]fragment, 1)
	for i, x := range all {
		k := borderKey(x.left[len(x.left)-1], x.right[0])
		if f.group[k] == 0 {
			f.group[k] = uint16(len(f.lists))
			f.lists = append(f.lists, nil)
		}
		f.lists[f.group[k]] = append(f.lists[f.group[k]], x)
		switch {
		case !harmful[i]:
		case len(x.right) > 1:
			f.near[k] |= 1 << (x.right[1] & 63)
		default:
			f.near[k] = ^uint64(0)
		}
	}
}

// at are the fragments that may lie across the border before w[p].
func (f *fragments) at(w []byte, p int) []fragment { return f.lists[f.group[borderKey(w[p-1], w[p])]] }

// lies reports whether x lies across the border before w[p].
func (x *fragment) lies(w []byte, p int) bool {
	return len(x.left) <= p && len(x.right) <= len(w)-p &&
		string(w[p:p+len(x.right)]) == x.right && string(w[p-len(x.left):p]) == x.left
}

// cross reports whether a fragment lies across the border before w[p] that ends inside
// the character to its right (head), or starts inside that to its left.
func (f *fragments) cross(w []byte, p int, head bool) bool {
	list := f.at(w, p)
	for i := range list {
		if list[i].head == head && list[i].lies(w, p) {
			return true
		}
	}
	return false
}

// breaks reports whether a fragment lies across the border before w[p] that can form
// before the character to its right (head) or left does, whose last merge is formed.
func (f *fragments) breaks(w []byte, p int, head bool, formed uint32) bool {
	list := f.at(w, p)
	for i := range list {
		if x := &list[i]; x.head == head && x.code <= formed && x.lies(w, p) {
			return true
		}
	}
	return false
}
