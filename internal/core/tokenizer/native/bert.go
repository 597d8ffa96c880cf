package native

import (
	"context"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// bert is BertNormalizer.
type bert struct {
	clean, chinese, accents, lower bool // accents: strip them
}

func (n bert) normalize(ctx context.Context, x passage, limit int) (passage, error) {
	var err error
	if n.clean {
		if x, err = x.each(limit, appendClean); err != nil {
			return passage{}, err
		}
	}
	if n.chinese {
		if x, err = x.each(limit, appendApart); err != nil {
			return passage{}, err
		}
	}
	if n.accents {
		if x, err = form(unitab.NFD).normalize(ctx, x, limit); err != nil {
			return passage{}, err
		}
		x = x.filter(func(r rune) bool { return !unitab.IsNonspacing(r) })
	}
	if n.lower {
		return lowercase{}.normalize(ctx, x, limit)
	}
	return x, nil
}

func appendClean(dst []byte, r rune) []byte {
	switch {
	case isSpace(r) && (r == '\t' || r == '\n' || r == '\r' || !unitab.IsOther(r)):
		return append(dst, ' ')
	case r == 0, r == utf8.RuneError, unitab.IsOther(r):
		return dst
	}
	return utf8.AppendRune(dst, r)
}

// appendApart puts blanks around ideographs.
func appendApart(dst []byte, r rune) []byte {
	if !isIdeograph(r) {
		return utf8.AppendRune(dst, r)
	}
	return append(utf8.AppendRune(append(dst, ' '), r), ' ')
}

// isIdeograph knows the blocks that the library does, with its gap at U+2B820.
func isIdeograph(r rune) bool {
	switch {
	case r >= 0x4E00 && r <= 0x9FFF, r >= 0x3400 && r <= 0x4DBF, r >= 0xF900 && r <= 0xFAFF,
		r >= 0x20000 && r <= 0x2A6DF, r >= 0x2A700 && r <= 0x2B73F, r >= 0x2B740 && r <= 0x2B81F,
		r >= 0x2B920 && r <= 0x2CEAF, r >= 0x2F800 && r <= 0x2FA1F:
		return true
	}
	return false
}
