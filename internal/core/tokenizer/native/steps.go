package native

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/split"
	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// A step cuts one piece into smaller ones, which it appends to dst; empty ones count
// for nothing. Steps are the general way; what the families of package split do needs
// none.
type step interface {
	cut(ctx context.Context, dst []passage, p passage) ([]passage, error)
}

// behaviour says what becomes of the matches of a Split.
type behaviour string

const (
	removed    behaviour = "Removed"
	isolated   behaviour = "Isolated"
	previous   behaviour = "MergedWithPrevious"
	next       behaviour = "MergedWithNext"
	contiguous behaviour = "Contiguous"
)

func (b behaviour) known() bool {
	switch b {
	case removed, isolated, previous, next, contiguous:
		return true
	}
	return false
}

// span is a match or what stands between two. A match may be empty.
type span struct {
	from, to int
	match    bool
}

// spans collects matches in order.
type spans struct {
	list   []span
	at     int
	invert bool
}

func (x *spans) add(from, to int) {
	x.gap(from)
	x.list = append(x.list, span{from, to, !x.invert})
	x.at = to
}

func (x *spans) gap(to int) {
	if to > x.at {
		x.list = append(x.list, span{x.at, to, x.invert})
	}
}

// cut appends what a behaviour makes of the matches in p.
func (b behaviour) cut(dst []passage, p passage, x *spans) []passage {
	x.gap(len(p.s))
	for i := 0; i < len(x.list); i++ {
		s := x.list[i]
		switch {
		case b == removed && s.match:
			continue
		case b == previous:
			// A match joins what is before it, but not another match.
			if i+1 < len(x.list) && x.list[i+1].match && !s.match {
				i++
				s.to = x.list[i].to
			}
		case b == next:
			if i+1 < len(x.list) && s.match && !x.list[i+1].match {
				i++
				s.to = x.list[i].to
			}
		case b == contiguous:
			for i+1 < len(x.list) && x.list[i+1].match == s.match {
				i++
				s.to = x.list[i].to
			}
		}
		if s.from < s.to {
			dst = append(dst, p.slice(s.from, s.to))
		}
	}
	return dst
}

// splitStep is a Split on a literal or a regular expression.
type splitStep struct {
	literal string
	re      *split.Regex // if not literal
	what    behaviour
	invert  bool
}

func (p *splitStep) cut(ctx context.Context, dst []passage, x passage) ([]passage, error) {
	found := &spans{invert: p.invert}
	if p.re != nil {
		if err := p.re.Matches(ctx, x.s, found.add); err != nil {
			return nil, err
		}
		return p.what.cut(dst, x, found), nil
	}
	for i := 0; ; {
		k := strings.Index(x.s[i:], p.literal)
		if k < 0 {
			return p.what.cut(dst, x, found), nil
		}
		found.add(i+k, i+k+len(p.literal))
		i += k + len(p.literal)
	}
}

// charStep is a Split on each character that is one of a class.
type charStep struct {
	is   func(r rune) bool
	what behaviour
}

func (p charStep) cut(_ context.Context, dst []passage, x passage) ([]passage, error) {
	found := &spans{}
	for i, r := range x.s {
		if p.is(r) {
			found.add(i, i+utf8.RuneLen(r))
		}
	}
	return p.what.cut(dst, x, found), nil
}

func isSpace(r rune) bool { return unitab.Of(r)&unitab.Space != 0 }

// words is the pre-tokenizer Whitespace: \w+|[^\w\s]+ and nothing else.
type words struct{}

func (words) cut(_ context.Context, dst []passage, x passage) ([]passage, error) {
	const space, word, other = 0, 1, 2
	from, was := 0, space
	end := func(at int) {
		if was != space {
			dst = append(dst, x.slice(from, at))
		}
		from = at
	}
	for i, r := range x.s {
		is := other
		switch {
		case isSpace(r):
			is = space
		case unitab.IsWord(r):
			is = word
		}
		if is != was {
			end(i)
			was = is
		}
	}
	end(len(x.s))
	return dst, nil
}

// scripts cuts where another script begins. What is of any stays with what is before
// it; at the start of a piece the library drops it.
type scripts struct{}

func (scripts) cut(_ context.Context, dst []passage, x passage) ([]passage, error) {
	from, last := 0, uint8(0)
	for i, r := range x.s {
		is := unitab.Script(r)
		if is == 0 || is == last {
			continue
		}
		if last != 0 {
			dst = append(dst, x.slice(from, i))
		}
		from, last = i, is
	}
	if last != 0 {
		dst = append(dst, x.slice(from, len(x.s)))
	}
	return dst, nil
}

// fixedLength cuts every so many characters.
type fixedLength int

func (n fixedLength) cut(_ context.Context, dst []passage, x passage) ([]passage, error) {
	from, count := 0, 0
	for i := range x.s {
		if count == int(n) {
			dst = append(dst, x.slice(from, i))
			from, count = i, 0
		}
		count++
	}
	return append(dst, x.slice(from, len(x.s))), nil
}

// known is a hand-written splitter as a step.
type known struct{ p *split.Splitter }

func (k known) cut(_ context.Context, dst []passage, x passage) ([]passage, error) {
	for i := 0; i < len(x.s); {
		j := k.p.Next(x.s, i)
		dst = append(dst, x.slice(i, j))
		i = j
	}
	return dst, nil
}

// prefixSpace puts a blank before a piece that has none.
type prefixSpace struct{}

func (prefixSpace) cut(_ context.Context, dst []passage, x passage) ([]passage, error) {
	if !strings.HasPrefix(x.s, " ") {
		x = x.prepend(" ")
	}
	return append(dst, x), nil
}

// metaspace writes blanks as a mark of their own, puts one in front, and cuts before
// each if split.
type metaspace struct {
	mark   string
	scheme string // always, first, never
	split  bool
}

func (p metaspace) cut(ctx context.Context, dst []passage, x passage) ([]passage, error) {
	first := x.head > 0
	x = replace{" ", p.mark}.all(x)
	if (p.scheme == "always" || p.scheme == "first" && first) && !strings.HasPrefix(x.s, p.mark) {
		x = x.prepend(p.mark)
	}
	if !p.split {
		return append(dst, x), nil
	}
	return (&splitStep{literal: p.mark, what: next}).cut(ctx, dst, x)
}
