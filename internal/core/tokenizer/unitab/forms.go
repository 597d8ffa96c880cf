package unitab

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"
)

type (
	decomposition struct {
		r    rune
		full string
	}
	composition struct{ a, b, r rune }
)

// Hangul syllables are composed by rule (Unicode 9.0, section 3.12).
const (
	hangulBase, hangulEnd      = 0xAC00, 0xD7A4
	leadBase, vowelBase        = 0x1100, 0x1161
	finalBase                  = 0x11A7
	leads, vowels, finals      = 19, 21, 28
	hangulBlock                = vowels * finals
	utf8LeadOfU0300       byte = 0xCC // the first character that a normal form may touch
)

// Form is a normal form.
type Form uint8

// The normal forms.
const (
	NFC Form = iota
	NFD
	NFKC
	NFKD
)

// Append appends s in a normal form to dst. There is no limit to a run of marks:
// unlike golang.org/x/text it inserts no U+034F after the thirtieth. Each byte that
// is no UTF-8 becomes U+FFFD: what follows steps by lead bytes and trusts them.
func (f Form) Append(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	var room [64]char // on the stack: more than any stretch but those of tests
	seg := segment{room[:0]}
	for len(s) > 0 {
		n := f.quiet(s)
		dst = append(dst, s[:n]...)
		s = s[n:]
		if n = f.loud(s); n > 0 {
			seg.work(f, s[:n])
			for _, c := range seg.chars {
				dst = utf8.AppendRune(dst, c.r)
			}
			s = s[n:]
		}
	}
	return dst
}

// IsNFC reports whether NFC leaves s as it is without looking twice: false may be
// wrong, true never.
func IsNFC(s string) bool { return firstUnstable(s) == len(s) }

// firstUnstable returns where the first character stands that NFC may change or
// move, or that may join the one before it.
func firstUnstable(s string) int {
	raw := unsafe.Slice(unsafe.StringData(s), len(s))
	for i := 0; i < len(s); {
		b := s[i]
		switch {
		case b < utf8.RuneSelf:
			i++
			for i+8 <= len(s) && binary.LittleEndian.Uint64(raw[i:])&0x8080808080808080 == 0 {
				i += 8
			}
		case b < utf8LeadOfU0300:
			i += 2
		case b >= 0xE0 && b < 0xF0 && i+2 < len(s):
			r := uint(b&15)<<12 | uint(s[i+1]&63)<<6 | uint(s[i+2]&63)
			if unstablePages[unstableIndex[r>>7]][r&127] != 0 {
				return i
			}
			i += 3
			for i+3 <= len(s) && isIdeograph(s[i], s[i+1]) {
				i += 3
			}
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			if unstablePages[unstableIndex[r>>7]][r&127] != 0 {
				return i
			}
			i += n
		}
	}
	return len(s)
}

// isIdeograph reports whether two bytes start one of U+4E00 to U+9FFF, which no normal
// form touches.
func isIdeograph(first, second byte) bool {
	return (uint(first)<<8|uint(second))-0xE4B8 <= 0xE9BF-0xE4B8
}

// quiet returns how much of s the form leaves as it is, up to a character that no
// later one can reach across.
func (f Form) quiet(s string) int {
	if f != NFC {
		i := 0
		for i < len(s) && s[i] < utf8.RuneSelf { // ASCII has no decomposition
			i++
		}
		if i > 0 && i < len(s) {
			i-- // may be the base of a mark
		}
		return i
	}
	i := firstUnstable(s)
	if i < len(s) && i > 0 {
		_, n := utf8.DecodeLastRuneInString(s[:i])
		i -= n
	}
	return i
}

// loud returns the length of the stretch at the start of s that is to be worked
// through: it ends before a character that NFC leaves alone, which is a border for
// the other forms too.
func (f Form) loud(s string) int {
	for i, r := range s {
		border := unstablePages[unstableIndex[r>>7]][r&127] == 0
		switch f {
		case NFD:
			border = border && ccc(r) == 0
		case NFKC, NFKD: // some letters become marks
			border = r < utf8.RuneSelf || r >= 0x4E00 && r <= 0x9FFF
		}
		if border && i > 0 {
			return i
		}
	}
	return len(s)
}

func ccc(r rune) uint8 { return cccPages[cccIndex[r>>7]][r&127] }

type char struct {
	r      rune
	ccc    uint8
	change int16 // see Changes
}

// segment is a stretch of characters that is normalised at once.
type segment struct{ chars []char }

func (g *segment) work(f Form, s string) {
	g.decompose(s, f == NFKC || f == NFKD)
	g.order()
	if f == NFC || f == NFKC {
		g.compose()
	}
}

func (g *segment) decompose(s string, compat bool) {
	g.chars = g.chars[:0]
	for _, r := range s {
		g.add(r, compat)
	}
}

func (g *segment) add(r rune, compat bool) {
	if r >= hangulBase && r < hangulEnd {
		i := r - hangulBase
		g.chars = append(g.chars, char{r: leadBase + i/hangulBlock}, char{r: vowelBase + i%hangulBlock/finals, change: 1})
		if t := i % finals; t != 0 {
			g.chars = append(g.chars, char{r: finalBase + t, change: 1})
		}
		return
	}
	full, ok := "", false
	if compat {
		full, ok = find(compatible, r)
	}
	if !ok {
		full, ok = find(canonical, r)
	}
	if !ok {
		g.chars = append(g.chars, char{r: r, ccc: ccc(r)})
		return
	}
	change := int16(0)
	for _, q := range full {
		g.chars = append(g.chars, char{q, ccc(q), change})
		change = 1
	}
}

func find(table []decomposition, r rune) (string, bool) {
	i, ok := slices.BinarySearchFunc(table, r, func(d decomposition, r rune) int { return cmp.Compare(d.r, r) })
	if !ok {
		return "", false
	}
	return table[i].full, true
}

// order sorts each run of marks by combining class, equal ones as they came.
func (g *segment) order() {
	for i := 0; i < len(g.chars); i++ {
		if g.chars[i].ccc == 0 {
			continue
		}
		from := i
		for i < len(g.chars) && g.chars[i].ccc != 0 {
			i++
		}
		slices.SortStableFunc(g.chars[from:i], func(a, b char) int { return cmp.Compare(a.ccc, b.ccc) })
	}
}

// compose joins characters with the last starter before them unless something of
// the same or a higher class stands between (Unicode 9.0, D117).
func (g *segment) compose() {
	out := g.chars[:0]
	starter := -1 // in out
	for _, c := range g.chars {
		if starter >= 0 {
			last := out[len(out)-1]
			blocked := len(out)-1 > starter && (last.ccc == 0 || last.ccc >= c.ccc)
			if !blocked {
				if r, ok := join(out[starter].r, c.r); ok {
					out[starter].r = r
					out[starter].change += c.change - 1
					continue
				}
			}
		}
		if c.ccc == 0 {
			starter = len(out)
		}
		out = append(out, c)
	}
	g.chars = out
}

func join(a, b rune) (rune, bool) {
	if v := b - vowelBase; v >= 0 && v < vowels && a >= leadBase && a < leadBase+leads {
		return hangulBase + ((a-leadBase)*vowels+v)*finals, true
	}
	if t := b - finalBase; t > 0 && t < finals && a >= hangulBase && a < hangulEnd && (a-hangulBase)%finals == 0 {
		return a + t, true
	}
	i, ok := slices.BinarySearchFunc(composed, [2]rune{a, b}, func(c composition, k [2]rune) int {
		return cmp.Or(cmp.Compare(c.a, k[0]), cmp.Compare(c.b, k[1]))
	})
	if !ok {
		return 0, false
	}
	return composed[i].r, true
}

// TrimSpace cuts white space from the sides that are asked for.
func TrimSpace(s string, left, right bool) string {
	space := func(r rune) bool { return Of(r)&Space != 0 }
	if left {
		s = strings.TrimLeftFunc(s, space)
	}
	if right {
		s = strings.TrimRightFunc(s, space)
	}
	return s
}
