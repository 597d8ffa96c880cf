package native

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/split"
	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// normalizer changes a stretch of text between added tokens. Texts it leaves as they
// are it returns without a copy. One that would become longer than limit is an error.
type normalizer interface {
	normalize(ctx context.Context, x passage, limit int) (passage, error)
}

type normalizers []normalizer

func (n normalizers) normalize(ctx context.Context, x passage) (_ passage, err error) {
	limit := maxGrowth * len(x.s)
	for _, f := range n {
		if x, err = f.normalize(ctx, x, limit); err == nil && len(x.s) > limit {
			err = errGrowth
		}
		if err != nil {
			return passage{}, fmt.Errorf("normalizer: %w", err)
		}
	}
	return x, nil
}

// form is one of NFC, NFD, NFKC, NFKD.
type form unitab.Form

func (f form) normalize(_ context.Context, x passage, _ int) (passage, error) {
	if unitab.Form(f) == unitab.NFC && unitab.IsNFC(x.s) {
		return x, nil
	}
	out := passage{s: string(unitab.Form(f).Append(make([]byte, 0, len(x.s)+len(x.s)/8), x.s))}
	if x.head > 0 {
		a := aligner{old: x}
		unitab.Form(f).Changes(x.s, func(r rune, change int) bool {
			a.add(utf8.RuneLen(r), change)
			return !a.done
		})
		a.flush()
		out.head = a.head
	}
	return out, nil
}

type strip struct {
	Left  bool `json:"strip_left"`
	Right bool `json:"strip_right"`
}

func (n strip) normalize(_ context.Context, x passage, _ int) (passage, error) {
	left := unitab.TrimSpace(x.s, n.Left, false)
	from := len(x.s) - len(left)
	return x.slice(from, from+len(unitab.TrimSpace(left, false, n.Right))), nil
}

type prepend string

func (n prepend) normalize(_ context.Context, x passage, limit int) (passage, error) {
	if x.s == "" {
		return x, nil
	}
	if len(n) > limit-len(x.s) {
		return passage{}, errGrowth
	}
	return x.prepend(string(n)), nil
}

type replace struct{ old, new string }

func (n replace) normalize(_ context.Context, x passage, limit int) (passage, error) {
	if more := len(n.new) - len(n.old); more > 0 && strings.Count(x.s, n.old) > (limit-len(x.s))/more {
		return passage{}, errGrowth
	}
	return n.all(x), nil
}

// all replaces without a limit. A match's new text belongs to its last character.
func (n replace) all(x passage) passage {
	head := 0
	for i := 0; i < x.head; {
		k := strings.Index(x.s[i:], n.old)
		if k < 0 || i+k >= x.head {
			head += x.head - i
			break
		}
		head += k
		if i += k + len(n.old); i <= x.head {
			head += len(n.new)
		}
	}
	return passage{strings.ReplaceAll(x.s, n.old, n.new), head}
}

type replaceRegex struct {
	re  *split.Regex
	new string
}

// errEmptyMatch: the library loses count of the characters then.
var errEmptyMatch = fmt.Errorf("a Replace whose pattern matches between two characters: %w", ErrUnsupported)

func (n replaceRegex) normalize(ctx context.Context, x passage, limit int) (passage, error) {
	var b strings.Builder
	at, head, empty := 0, 0, false
	err := n.re.Matches(ctx, x.s, func(from, to int) {
		if empty = empty || from == to; empty || b.Len() > limit {
			return
		}
		b.WriteString(x.s[at:from])
		b.WriteString(n.new)
		if head += max(min(from, x.head)-at, 0); to <= x.head {
			head += len(n.new)
		}
		at = to
	})
	switch {
	case err != nil:
		return passage{}, err
	case empty:
		return passage{}, errEmptyMatch
	case b.Len() > limit:
		return passage{}, errGrowth
	}
	b.WriteString(x.s[at:])
	return passage{b.String(), head + max(x.head-at, 0)}, nil
}

// lowercase looks at each character alone: a final sigma is like any other.
type lowercase struct{}

func (lowercase) normalize(_ context.Context, x passage, limit int) (passage, error) {
	return x.each(limit, unitab.AppendLower)
}

type stripAccents struct{}

func (stripAccents) normalize(_ context.Context, x passage, _ int) (passage, error) {
	return x.filter(func(r rune) bool { return !unitab.IsMark(r) }), nil
}

// nmt drops controls and makes blanks of other white space.
type nmt struct{}

func (nmt) normalize(_ context.Context, x passage, limit int) (passage, error) {
	return x.each(limit, func(dst []byte, r rune) []byte {
		switch {
		case r == '\t' || r == '\n' || r == '\f' || r == '\r', r == 0x1680, r >= 0x200B && r <= 0x200F,
			r == 0x2028, r == 0x2029, r == 0x2581, r == 0xFEFF, r == 0xFFFD:
			return append(dst, ' ')
		case r >= 0x01 && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
			return dst
		}
		return utf8.AppendRune(dst, r)
	})
}

// byteAlphabet writes each byte in the alphabet of byte-level vocabularies.
type byteAlphabet struct{}

func (byteAlphabet) normalize(_ context.Context, x passage, limit int) (passage, error) {
	var b [utf8.UTFMax]byte
	return x.each(limit, func(dst []byte, r rune) []byte {
		for _, c := range b[:utf8.EncodeRune(b[:], r)] {
			dst = utf8.AppendRune(dst, written[c])
		}
		return dst
	})
}
