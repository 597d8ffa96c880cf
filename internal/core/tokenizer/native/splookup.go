package native

import (
	"context"
	"strings"
	"unicode/utf8"
)

// useSPLookup is for models of type CHAR and WORD, which only look each character or
// word up.
func (t *Tokenizer) useSPLookup(m *spModel) error {
	if err := t.setWholeText(m); err != nil {
		return err
	}
	t.info.Model = "Word"
	next := nextWord
	if m.modelType == modelChar {
		t.info.Model = "Char"
		next = nextChar(m.userMatcher())
	}
	ids := make(map[string]uint32, len(m.pieces))
	for id, p := range m.pieces {
		if !p.reserved() {
			ids[string(p.text)] = uint32(id)
		}
	}
	unknown, bytes := m.unknown()
	t.setGeneral(&general{piece: func(out []uint32, s string, sc *scratch) ([]uint32, error) {
		return lookup{ids, unknown, bytes, next}.append(sc.ctx, out, s)
	}}, nil)
	return nil
}

// lookup finds pieces one by one.
type lookup struct {
	ids     map[string]uint32
	unknown uint32
	bytes   []uint32           // nil: none
	next    func(s string) int // length of the first character or word
}

// piecesPerLook is how many pieces lie between two looks at the context.
const piecesPerLook = 1 << 10

func (l lookup) append(ctx context.Context, out []uint32, s string) ([]uint32, error) {
	run := false // neighbouring unknown ones are one
	for count := 1; s != ""; count++ {
		if count%piecesPerLook == 0 && ctx.Err() != nil {
			return out, ctx.Err()
		}
		piece := s[:l.next(s)]
		s = s[len(piece):]
		id, ok := l.ids[piece]
		switch {
		case !ok && l.bytes != nil:
			for _, b := range []byte(piece) {
				out = append(out, l.bytes[b])
			}
		case ok:
			out = append(out, id)
		case !run:
			out = append(out, l.unknown)
		}
		run = !ok
	}
	return out, nil
}

// nextWord ends before the next mark of a blank.
func nextWord(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	if k := strings.Index(s[n:], blankMark); k >= 0 {
		return n + k
	}
	return len(s)
}

// nextChar is a character, or a piece of the user.
func nextChar(user *matcher) func(string) int {
	return func(s string) int {
		if user != nil {
			if a := user.match(s, 0); a != nil {
				return len(a.Content)
			}
		}
		_, n := utf8.DecodeRuneInString(s)
		return n
	}
}
