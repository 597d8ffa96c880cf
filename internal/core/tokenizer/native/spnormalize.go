package native

import (
	"context"
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
	removeExtra bool
	ends        string // what is taken off the end with removeExtra
}

func (n *spNormalizer) normalize(_ context.Context, x passage, limit int) (passage, error) {
	s := x.s
	for n.removeExtra && s != "" {
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
	if n.dummyPrefix {
		b.WriteByte(' ')
	}
	for blank := n.removeExtra; s != "" && b.Len() <= limit; {
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
