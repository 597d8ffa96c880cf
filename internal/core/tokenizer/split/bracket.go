package split

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// maxNested is how many sets may stand in each other; patterns have two.
const maxNested = 16

// bracket writes a bracket expression.
func (w *rewriter) bracket() error {
	s, err := w.brackets(1)
	if err != nil {
		return err
	}
	w.construct("")
	w.set(s)
	return nil
}

// brackets reads a bracket expression: sets, each the union of its members, with && in
// between, which intersects them. Without regard to case, fancy-regex adds to each set
// what is the same, and Oniguruma to the outermost alone.
func (w *rewriter) brackets(depth int) (set, error) {
	if depth > maxNested {
		return nil, fmt.Errorf("more than %d sets in each other", maxNested)
	}
	w.at++
	negated := w.next(0) == '^'
	if negated {
		w.at++
	}
	all, err := w.members(depth, true)
	if err != nil {
		return nil, err
	}
	all = w.folded(all, w.simple)
	for w.next(0) == '&' {
		w.at += len("&&")
		s, err := w.members(depth, false)
		if err != nil {
			return nil, err
		}
		all = unitab.Intersect(all, w.folded(s, w.simple))
	}
	w.at++
	if outermost := depth == 1; outermost && !w.simple && w.isCaseless() {
		if !negated {
			if err := notSeveral(all); err != nil {
				return nil, err
			}
		}
		all = unitab.WithCases(all)
	}
	if negated {
		return unitab.Complement(all), nil
	}
	return unitab.Union(all), nil
}

// folded adds what is the same without regard to case, if that counts here.
func (w *rewriter) folded(s set, here bool) set {
	if here && w.isCaseless() {
		return unitab.WithCases(s)
	}
	return s
}

// members reads the members of a set up to its closing bracket or to &&. A closing
// bracket that comes first is a member; so is a hyphen at the start, at the end, and
// behind a range or a set.
func (w *rewriter) members(depth int, first bool) (out set, err error) {
	for ; ; first = false {
		switch c := w.next(0); {
		case w.at >= len(w.src):
			return nil, fmt.Errorf("bracket is not closed")
		case c == ']' && !first, w.has("&&"):
			return out, nil
		case c == '[' && w.next(1) != ':':
			s, err := w.brackets(depth + 1)
			if err != nil {
				return nil, err
			}
			out = append(out, s...)
			continue
		}
		m, err := w.member()
		if err != nil {
			return nil, err
		}
		if w.next(0) == '-' && !w.ends(1) {
			if m, err = w.upTo(m); err != nil {
				return nil, err
			}
		}
		out = append(out, m.set...)
	}
}

func (w *rewriter) has(s string) bool { return strings.HasPrefix(w.src[w.at:], s) }

// ends reports whether a set ends n bytes on.
func (w *rewriter) ends(n int) bool {
	return w.next(n) == ']' || w.next(n) == '&' && w.next(n+1) == '&'
}

// member reads one member of a set, but no set in brackets of its own.
func (w *rewriter) member() (member, error) {
	switch {
	case w.has("[:"):
		return w.posixClass()
	case w.has(`\w`), w.has(`\W`):
		w.at += 2
		return class(w.inside(), w.src[w.at-1] == 'W'), nil
	case w.has(`\b`):
		w.at += 2
		return single('\b'), nil
	case w.has(`\`):
		return w.escaped()
	case w.simple && (w.has("--") || w.has("~~")):
		return member{}, fmt.Errorf("%.2q in a set is not supported", w.src[w.at:])
	}
	r, n := utf8.DecodeRuneInString(w.src[w.at:])
	w.at += n
	return single(r), nil
}

// upTo reads a hyphen and the end of the range that begins with a member.
func (w *rewriter) upTo(from member) (member, error) {
	if w.simple && w.has("--") {
		return member{}, fmt.Errorf("%q in a set is not supported", "--")
	}
	w.at++
	if from.class || w.next(0) == '[' {
		return member{}, fmt.Errorf("hyphen beside a class in a set is not supported")
	}
	to, err := w.member()
	if err != nil {
		return member{}, err
	}
	first, last := from.set[0].First, rune(-1)
	if !to.class {
		last = to.set[0].First
	}
	if last < first {
		return member{}, fmt.Errorf("range in a set that ends before it begins, or with a class")
	}
	return member{set: set{{First: first, Last: last}}}, nil
}

// posixClass reads one like [:alpha:] or [:^alpha:].
func (w *rewriter) posixClass() (member, error) {
	name, _, ok := strings.Cut(w.src[w.at+len("[:"):], ":]")
	if !ok {
		return member{}, fmt.Errorf("%.3q in a set is not supported", w.src[w.at:])
	}
	w.at += len("[:") + len(name) + len(":]")
	name, negated := strings.CutPrefix(name, "^")
	s, ok := w.posix(name)
	if !ok {
		return member{}, fmt.Errorf("class %q is not supported", "[:"+name+":]")
	}
	return class(w.folded(s, w.simple), negated), nil
}
