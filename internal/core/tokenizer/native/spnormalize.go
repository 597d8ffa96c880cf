package native

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"
)

// spNormalizer is the normaliser of a tokenizer.model, which goes over the whole text:
// at each place the longest entry of the map is replaced. A blank is one, which the
// encoder takes for the mark.
type spNormalizer struct {
	charsMap    *charsMap // nil: none
	user        *matcher  // pieces of the user, which are left as they are; nil: none
	dummyPrefix bool
	suffix      bool // the blank of dummyPrefix is put behind the text
	removeExtra bool
	ends        string // what is taken off the end with removeExtra
	mark        string // what is written for a blank in the end; "": a blank
}

// normalizer is what the model says of its own.
func (m *spModel) normalizer() (*spNormalizer, error) {
	n := &spNormalizer{dummyPrefix: m.dummyPrefix, suffix: m.suffix, removeExtra: m.removeExtra, ends: " "}
	if m.escapeBlanks {
		n.ends += blankMark
	}
	if len(m.charsMap) > 0 {
		var err error
		if n.charsMap, err = readCharsMap(m.charsMap); err != nil {
			return nil, fmt.Errorf("normalizer %q: %w", m.normalizerRule, err)
		}
	}
	return n, nil
}

// prefixesPerLook is how many places lie between two looks at the context: of a file that
// is made to be slow, with 200,000 pieces of the user that begin alike, one takes up to a
// millisecond.
const prefixesPerLook = 1 << 6

func (n *spNormalizer) normalize(ctx context.Context, x passage, limit int) (passage, error) {
	s := x.s
	chars := 0
	look := func() error {
		if chars++; chars%prefixesPerLook == 0 {
			return ctx.Err()
		}
		return nil
	}
	for n.removeExtra && s != "" {
		if err := look(); err != nil {
			return passage{}, err
		}
		to, size := n.prefix(s)
		if to != " " {
			break
		}
		s = s[size:]
	}
	if s == "" {
		return passage{}, nil
	}
	var b strings.Builder
	if n.dummyPrefix && !n.suffix {
		b.WriteByte(' ')
	}
	for blank := n.removeExtra; s != "" && b.Len() <= limit; {
		if err := look(); err != nil {
			return passage{}, err
		}
		to, size := n.prefix(s)
		if s = s[size:]; blank {
			to = strings.TrimLeft(to, " ")
		}
		if b.WriteString(to); to != "" {
			blank = n.removeExtra && strings.HasSuffix(to, " ")
		}
	}
	if b.Len() > limit {
		return passage{}, errGrowth
	}
	out := b.String()
	if n.removeExtra {
		out = strings.TrimRight(out, n.ends)
	}
	if n.dummyPrefix && n.suffix {
		out += " "
	}
	if n.mark != "" {
		out = strings.ReplaceAll(out, " ", n.mark)
	}
	return passage{s: out}, nil
}

// prefix returns what the start of s becomes, and its length.
func (n *spNormalizer) prefix(s string) (to string, size int) {
	if n.user != nil {
		if a := n.user.match(s, 0); a != nil {
			return s[:len(a.Content)], len(a.Content)
		}
	}
	if n.charsMap != nil {
		if size, to := n.charsMap.longest(s); size > 0 {
			return to, size
		}
	}
	_, size = utf8.DecodeRuneInString(s)
	return s[:size], size
}
