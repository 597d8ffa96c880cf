package native

import (
	"strings"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// A cut of a text is safe if the ids of the whole are those of the two parts, one
// behind the other. Three kinds are, each under conditions that are looked at when a
// vocabulary is loaded.
//
// Behind an added token, if none takes neighbouring white space or looks for word
// borders: matching goes from left to right, so the left part has the same matches
// up to the token, and the right part starts a stretch in both.
//
// Before a blank that stands between a letter, or a visible ASCII character that is
// no apostrophe, and a letter. In each hand-written pattern nothing but a contraction
// or line ends goes on behind such a character, and only white space holds a blank in
// its middle; so a piece ends there, and none before it looks further than at the
// blank, which is to every pattern what the end of the text is. The same holds for
// vocabularies with blanks only in front, but for the exceptions in Keep. No normal
// form joins anything with a blank, and a letter that a mark follows is whole on the
// right side.
//
// Before a Chinese comma, full stop or the like behind an ideograph, for the
// hand-written patterns: a word ends there, and the sign starts a piece.
//
// The latter two ask that no added token can lie across, so none may hold a blank or
// such a sign behind its first character.
type cutter func(s string, from int) int

// stops are the signs of the third kind: U+3001, U+3002 and four of full width.
const stops = "、。！，：；？"

// setCuts decides on the cuts inside text.
func (t *Tokenizer) setCuts() {
	for _, n := range t.norm {
		if f, ok := n.(form); !ok || unitab.Form(f) != unitab.NFC {
			return
		}
	}
	for _, m := range []*matcher{t.raw, t.normed} {
		if m != nil && (!m.plain || m.holds(" "+stops)) {
			return
		}
	}
	switch e := t.encoder.(type) {
	case *tables:
		t.inText = cutWords
	case *spaced:
		b := blankCuts{keep: e.split.Keep}
		if t.raw != nil && e.prefix != never {
			b.tokenEnds = t.raw.lastBytes()
		}
		t.inText = b.next
	}
	t.info.Cuts = t.inText != nil
}

// holds reports whether a token has one of the characters behind its first byte.
func (m *matcher) holds(chars string) bool {
	for _, list := range m.byPair {
		for _, a := range list {
			if strings.ContainsAny(a.Content[1:], chars) {
				return true
			}
		}
	}
	return false
}

// cutWords returns the first cut at byte from or behind it, or -1.
func cutWords(s string, from int) int {
	for i := max(from, 1); i+1 < len(s); i++ {
		switch s[i] {
		case ' ':
			if r, _ := utf8.DecodeLastRuneInString(s[:i]); ends(r) && startsLetter(s[i+1:]) {
				return i
			}
		case 0xE3, 0xEF: // the first bytes of stops
			if r, n := utf8.DecodeRuneInString(s[i:]); n == 3 && strings.ContainsRune(stops, r) {
				if l, _ := utf8.DecodeLastRuneInString(s[:i]); l >= 0x4E00 && l <= 0x9FA5 {
					return i
				}
			}
		}
	}
	return -1
}

func ends(r rune) bool {
	return r > ' ' && r < 0x7F && r != '\'' || r >= utf8.RuneSelf && unitab.Of(r)&unitab.Letter != 0
}

func startsLetter(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unitab.Of(r)&unitab.Letter != 0
}

// lastBytes are the bytes that tokens end with.
func (m *matcher) lastBytes() (last [256]bool) {
	for b := range m.single {
		last[b] = true
	}
	for _, list := range m.byPair {
		for _, a := range list {
			last[a.Content[len(a.Content)-1]] = true
		}
	}
	return last
}

// blankCuts is for vocabularies that have blanks in front. The character before a
// cut is ASCII: one that is not may stand for a blank. It ends no added token, since
// behind one a blank is put in.
type blankCuts struct {
	keep      map[[2]byte]bool
	tokenEnds [256]bool
}

func (c *blankCuts) next(s string, from int) int {
	for i := max(from, 1); ; i++ {
		k := strings.IndexByte(s[min(i, len(s)):], ' ')
		if k < 0 || i+k+1 >= len(s) {
			return -1
		}
		i += k
		l := s[i-1]
		if l < utf8.RuneSelf && ends(rune(l)) && !c.tokenEnds[l] && startsLetter(s[i+1:]) && !c.keep[[2]byte{l, s[i+1]}] {
			return i
		}
	}
}

// cut returns the end of the chunk of text that starts at byte at: the first cut at
// least size behind it, and whether it is inside text. ok is false if there is none.
// It depends only on the text up to there and the next character, so that a text
// that goes on where another ended has the same chunks.
func (t *Tokenizer) cut(text string, at, size int) (end int, inside, ok bool) {
	if at+size >= len(text) {
		return 0, false, false
	}
	if t.inText != nil {
		end = t.inText(text, at+size)
		return end, true, end >= 0
	}
	if t.raw == nil || !t.raw.plain {
		return 0, false, false
	}
	for i := at; ; {
		k, a := t.raw.next(text, i)
		if a == nil {
			return 0, false, false
		}
		if i = k + len(a.Content); i >= at+size && i < len(text) {
			return i, false, true
		}
	}
}
