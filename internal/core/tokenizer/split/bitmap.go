package split

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// ASCII text is split 64 bytes at a time. Each byte is looked up once, in a table
// whose words have one bit per class; eight such words, each shifted by its byte's
// place, are or-ed to one that holds eight bits of eight classes; eight of those are
// transposed to one mask of 64 bits per class. Where the processor has vectors for it,
// they do that (bitmap_simd.go). The starts of pieces then follow from shifts of the
// masks.
//
// Why it is exact: a block begins where a piece begins, so nothing before it counts
// and no state crosses blocks. Each rule in starts looks at any bytes before a
// position, which the block holds, and at one byte behind it. So starts below the
// last byte of the block are right, and the next block begins at the last of them.
// Rules that look further (a contraction, blanks between line ends) look into the
// text, or the block is cut short before them.

// asciiRule says which of the families' rules hold.
type asciiRule struct {
	on        bool
	digits    int  // most digits in a piece: 1 or 3
	leading   bool // a contraction is a piece: 's
	cased     bool // a capital letter behind a small one begins a piece
	suffix    bool // a contraction belongs to the word before it
	slash     bool // '/' too continues the line ends behind punctuation
	stretches bool // digits end the text that the other rules see; controls are in no class
}

// The masks of a block, and the bit of each in a byte of spread.
const (
	mLetter = iota
	mDigit
	mSpace
	mNewline // CR, LF
	mBlank   // ' '
	mQuote   // '\''
	mCapital
	mSlash
	mControl = mSlash // in spreadControl
)

type masks [8]uint64

var spread, spreadControl = spreads()

func spreads() (plain, control [256]uint64) {
	for b := range byte(0x80) {
		c := unitab.ASCII(b)
		in := [8]bool{
			c&letter != 0, c&unitab.Number != 0, c&unitab.Space != 0, isNewline(b),
			b == ' ', b == '\'', c&unitab.Upper != 0, b == '/',
		}
		for k, yes := range in {
			if yes {
				plain[b] |= 1 << (8 * k)
			}
		}
		control[b] = plain[b] &^ (1 << (8 * mSlash))
		if c == 0 {
			control[b] |= 1 << (8 * mControl)
		}
	}
	return plain, control
}

// minBlock is the shortest text a block is worth: below, one piece at a time is
// as fast.
const minBlock = 16

const highBits = 0x8080808080808080

// block splits up to 64 bytes of ASCII from byte i on. n is 0 when that gave no
// border, and the caller goes on with next.
func (p *Splitter) block(s string, i int, ends []uint32) (n, to int) {
	b := unsafe.Slice(unsafe.StringData(s), len(s))[i:]
	if len(b) < minBlock || binary.LittleEndian.Uint64(b)&highBits != 0 {
		return 0, i
	}
	var m masks
	size := classify(p.rule.stretches, b, &m)
	st, limit := p.rule.starts(s, i, size, &m)
	st &= 1<<(limit-1) - 1
	st &^= 1
	ends = ends[:blockPieces]
	for ; st != 0; st &= st - 1 {
		to = i + bits.TrailingZeros64(st)
		ends[n&(blockPieces-1)] = uint32(to)
		n++
	}
	return n, to
}

// classifyWords is classify without vectors.
func classifyWords(control bool, b []byte, m *masks) uint {
	table := &spread
	if control {
		table = &spreadControl
	}
	size := spreadBytes(table, b, m)
	m.transpose()
	return size
}

// spreadBytes fills one word for each eight bytes and returns how many of the bytes
// are ASCII up to the first that is not.
func spreadBytes(table *[256]uint64, b []byte, m *masks) uint {
	k := 0
	for ; k < 8 && len(b) >= 8; k++ {
		c := (*[8]byte)(b)
		if w := binary.LittleEndian.Uint64(b) & highBits; w != 0 {
			n := bits.TrailingZeros64(w) >> 3
			for q := range n {
				m[k] |= table[c[q]] << q
			}
			return uint(8*k + n)
		}
		m[k] = table[c[0]] | table[c[1]]<<1 | table[c[2]]<<2 | table[c[3]]<<3 |
			table[c[4]]<<4 | table[c[5]]<<5 | table[c[6]]<<6 | table[c[7]]<<7
		b = b[8:]
	}
	if k == 8 {
		return 64
	}
	for q, c := range b {
		if c >= 0x80 {
			return uint(8*k + q)
		}
		m[k] |= table[c] << q
	}
	return uint(8*k + len(b))
}

// transpose turns eight words of eight bytes round: byte j of word k becomes byte k
// of word j (Hacker's Delight, 7-3, with bytes for bits).
func (m *masks) transpose() {
	const (
		m1 = 0x00FF00FF00FF00FF
		m2 = 0x0000FFFF0000FFFF
		m4 = 0x00000000FFFFFFFF
	)
	a, b, c, d, e, f, g, h := m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7]
	a, b = a&m1|b&m1<<8, a>>8&m1|b&^m1
	c, d = c&m1|d&m1<<8, c>>8&m1|d&^m1
	e, f = e&m1|f&m1<<8, e>>8&m1|f&^m1
	g, h = g&m1|h&m1<<8, g>>8&m1|h&^m1
	a, c = a&m2|c&m2<<16, a>>16&m2|c&^m2
	b, d = b&m2|d&m2<<16, b>>16&m2|d&^m2
	e, g = e&m2|g&m2<<16, e>>16&m2|g&^m2
	f, h = f&m2|h&m2<<16, f>>16&m2|h&^m2
	a, e = a&m4|e<<32, a>>32|e&^m4
	b, f = b&m4|f<<32, b>>32|f&^m4
	c, g = c&m4|g<<32, c>>32|g&^m4
	d, h = d&m4|h<<32, d>>32|h&^m4
	m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7] = a, b, c, d, e, f, g, h
}

// starts returns the mask of positions at which pieces start, and the length up to
// which it holds: bits from limit-1 on are not to be used.
func (r *asciiRule) starts(s string, i int, size uint, m *masks) (st uint64, limit uint) {
	letters, digits, spaces, newline := m[mLetter], m[mDigit], m[mSpace], m[mNewline]
	limit = size
	punct := ^uint64(0) >> (64 - size) &^ (letters | digits | spaces)

	// Line ends right behind punctuation belong to it: adding the first of them to
	// the run carries through it, and what the sum cleared is the run.
	ends := newline &^ (newline + punct<<1&newline)
	white := spaces &^ ends
	newline &^= ends
	thin := white &^ newline // blanks and tabs

	// White space starts a piece, and its last character one more, since that goes
	// with the word behind it. Before digits it does not where those end the stretch.
	last := thin &^ (spaces >> 1)
	if r.stretches {
		last &^= digits >> 1
	}
	st = white&^(white<<1) | last
	if behind := newline << 1 & thin; behind != 0 {
		st |= afterNewlines(behind, thin, newline, size)
	}

	// A run of punctuation starts a piece unless a blank stands before it, which then
	// is its start. One punctuation character that is a piece's start, or one blank or
	// tab, belongs to the word behind it.
	mark := punct &^ (punct << 1) &^ (m[mBlank] << 1)
	st |= mark
	word := letters &^ (letters << 1) &^ (thin << 1) &^ (mark << 1)
	st |= word

	switch number := digits &^ (digits << 1); {
	case r.digits == 1:
		st |= digits
	default:
		third := digits & (digits << 1) & (digits << 2)
		for st |= number; number != 0; st |= number {
			number = number << 3 & third
		}
	}

	if r.cased {
		st |= m[mCapital] & ((letters &^ m[mCapital]) << 1)
	}
	if r.leading {
		for q := mark & m[mQuote] & (letters >> 1); q != 0; q &= q - 1 {
			at := uint(bits.TrailingZeros64(q))
			if k := uint(contraction(s, i+int(at))); k > 0 {
				st |= letters & (1 << (at + k))
			}
		}
	}
	if r.suffix {
		st = suffixes(s, i, st, letters, m[mQuote])
	}
	if r.slash {
		if q := ends << 1 & m[mSlash]; q != 0 {
			limit = min(limit, uint(bits.TrailingZeros64(q)))
		}
	}
	if r.stretches && m[mControl] != 0 {
		limit = min(limit, uint(bits.TrailingZeros64(m[mControl])))
	}
	return st, max(limit, 2)
}

// afterNewlines returns which of the blanks right behind a line end (behind) start a
// piece: those whose run of blanks (thin) does not lead to another line end. Where
// the run reaches the end of the block none is returned: nothing behind it in the
// block can be a start that would be taken.
func afterNewlines(behind, thin, newline uint64, size uint) (st uint64) {
	for ; behind != 0; behind &= behind - 1 {
		from := uint(bits.TrailingZeros64(behind))
		to := from + uint(bits.TrailingZeros64(^(thin >> from)))
		if to < size && newline>>to&1 == 0 {
			st |= 1 << from
		}
	}
	return st
}

// suffixes takes contractions into the word before them: their apostrophe and
// letters start nothing, the letter behind them does. An apostrophe right behind a
// contraction begins the next word instead.
func suffixes(s string, i int, st, letters, quotes uint64) uint64 {
	last := uint(0)
	for q := quotes & (letters << 1) & (letters >> 1); q != 0; q &= q - 1 {
		at := uint(bits.TrailingZeros64(q))
		if at == last {
			continue
		}
		if k := uint(contraction(s, i+int(at))); k > 0 {
			st &^= (1<<k - 1) << at
			st |= letters & (1 << (at + k))
			last = at + k
		}
	}
	return st
}
