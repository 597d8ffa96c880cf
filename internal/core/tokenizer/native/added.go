package native

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// Added is a token that is matched in the text before the model sees it.
type Added struct {
	ID         uint32 `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // only where no word character is next to it
	LStrip     bool   `json:"lstrip"`      // takes the white space before it
	RStrip     bool   `json:"rstrip"`      // and behind it
	Normalized bool   `json:"normalized"`  // matched in the normalised text
	Special    bool   `json:"special"`     // says nothing about matching
}

// looksAround reports whether it strips or asks for its neighbours.
func (a Added) looksAround() bool { return a.LStrip || a.RStrip || a.SingleWord }

// matcher finds added tokens: the leftmost, of those at one place the longest.
type matcher struct {
	byPair map[[2]byte][]Added // by the first two bytes, longest first
	single map[byte][]Added    // of one byte
	first  [256]bool
	pairs  [1 << 16 / 64]uint64 // bit per first two bytes
	only   int                  // the first byte if all have the same, else -1
	leads  []uint64             // the first bytes, each eight times; nil if they are many
	plain  bool                 // none strips or looks at its neighbours
}

func newMatcher(list []Added) *matcher {
	m := &matcher{byPair: map[[2]byte][]Added{}, single: map[byte][]Added{}, only: -1, plain: true}
	for i, a := range list {
		b := a.Content[0]
		if i == 0 {
			m.only = int(b)
		} else if m.only != int(b) {
			m.only = -1
		}
		m.first[b] = true
		m.plain = m.plain && !a.looksAround()
		if len(a.Content) == 1 {
			m.single[b] = append(m.single[b], a)
			for second := range 256 {
				m.mark(b, byte(second))
			}
			continue
		}
		k := [2]byte{b, a.Content[1]}
		m.byPair[k] = append(m.byPair[k], a)
		m.mark(k[0], k[1])
	}
	for b := range m.first {
		if m.first[b] {
			m.leads = append(m.leads, ones*uint64(b))
		}
	}
	if len(m.leads) > maxLeads {
		m.leads = nil
	}
	for _, l := range m.byPair {
		slices.SortStableFunc(l, func(a, b Added) int { return cmp.Compare(len(b.Content), len(a.Content)) })
	}
	return m
}

func (m *matcher) mark(a, b byte) {
	k := uint(a)<<8 | uint(b)
	m.pairs[k>>6] |= 1 << (k & 63)
}

// next finds the first token at or behind s[i]; at is len(s) if there is none.
func (m *matcher) next(s string, i int) (at int, a *Added) {
	for i < len(s) {
		if !m.first[s[i]] {
			if m.only < 0 {
				i = m.skip(s, i+1)
				continue
			}
			k := strings.IndexByte(s[i:], byte(m.only))
			if k < 0 {
				break
			}
			i += k
		}
		if a := m.match(s, i); a != nil {
			return i, a
		}
		i++
	}
	return len(s), nil
}

// maxLeads: looking for more in eight bytes takes as long as byte by byte.
const maxLeads = 4

// skip goes on to a byte that starts a token, or to less than eight bytes before the end,
// eight bytes at a time (see scanner.raw).
func (m *matcher) skip(s string, i int) int {
	if m.leads == nil {
		return i
	}
	raw := unsafe.Slice(unsafe.StringData(s), len(s))
	for ; i+8 <= len(raw); i += 8 {
		w, hit := binary.LittleEndian.Uint64(raw[i:]), uint64(0)
		for _, lead := range m.leads {
			x := w ^ lead
			hit |= (x - ones) &^ x & highBits
		}
		if hit != 0 {
			return i + bits.TrailingZeros64(hit)>>3
		}
	}
	return i
}

// match returns the longest token at s[i].
func (m *matcher) match(s string, i int) *Added {
	if i+1 < len(s) {
		k := uint(s[i])<<8 | uint(s[i+1])
		if m.pairs[k>>6]>>(k&63)&1 == 0 {
			return nil
		}
		list := m.byPair[[2]byte{s[i], s[i+1]}]
		for k := range list {
			if strings.HasPrefix(s[i:], list[k].Content) {
				return &list[k]
			}
		}
	}
	if list := m.single[s[i]]; len(list) > 0 {
		return &list[0]
	}
	return nil
}

// cut appends to out what stretch gives for the text between tokens, and the tokens,
// in order. stretch is told where in s its text starts.
func (m *matcher) cut(out []uint32, s string, stretch func(out []uint32, s string, from int) ([]uint32, error)) (_ []uint32, err error) {
	done := 0
	for i := 0; i < len(s); {
		at, a := m.next(s, i)
		if a == nil {
			break
		}
		end := at + len(a.Content)
		i = end
		if a.SingleWord && (wordEnds(s[:at]) || wordStarts(s[end:])) {
			continue
		}
		if a.LStrip { // what a token before took is gone
			at = max(len(unitab.TrimSpace(s[:at], false, true)), done)
		}
		if a.RStrip {
			end = len(s) - len(unitab.TrimSpace(s[end:], true, false))
		}
		if end <= at { // white space that the token before has taken
			continue
		}
		if done < at {
			if out, err = stretch(out, s[done:at], done); err != nil {
				return nil, err
			}
		}
		out = append(out, a.ID)
		done = end
	}
	if done < len(s) {
		return stretch(out, s[done:], done)
	}
	return out, nil
}

func wordEnds(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s != "" && unitab.IsWord(r)
}

func wordStarts(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && unitab.IsWord(r)
}
