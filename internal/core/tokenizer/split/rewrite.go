package split

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// rewriter turns a pattern into one for regexp2 that names no Unicode class.
type rewriter struct {
	*dialect
	src      string
	at       int
	out      bytes.Buffer
	caseless []bool // one per open group
	opened   []int  // where in out each open group begins
	atom     int    // where in out begins what a quantifier would repeat
	literal  string // caseless characters that may be read as one string, folded
}

func (w *rewriter) pattern() error {
	w.caseless = []bool{strings.HasPrefix(w.src, "(?i)")}
	if w.isCaseless() {
		w.at = len("(?i)")
	}
	for w.at < len(w.src) {
		if w.out.Len() > maxWritten {
			return fmt.Errorf("with its classes written out it has more than %d bytes", maxWritten)
		}
		r, n := utf8.DecodeRuneInString(w.src[w.at:])
		if !strings.ContainsRune(")?*+{", r) {
			w.atom = w.out.Len()
		}
		var err error
		switch r {
		case '\\':
			err = w.escape()
		case '[':
			err = w.bracket()
		case '(':
			err = w.group()
		case ')':
			if len(w.caseless) == 1 {
				return fmt.Errorf("unmatched %q", r)
			}
			w.caseless = w.caseless[:len(w.caseless)-1]
			last := len(w.opened) - 1
			w.atom, w.opened = w.opened[last], w.opened[:last]
			w.copy(1)
		case '|':
			w.literal = ""
			w.copy(1)
		case '?', '*', '+', '{':
			err = w.quantifier()
		case '^', '$', '.':
			w.at++
			w.construct(w.places[byte(r)])
		default:
			w.at += n
			err = w.char(r)
		}
		if err != nil {
			return err
		}
	}
	if len(w.caseless) != 1 {
		return fmt.Errorf("group is not closed")
	}
	return nil
}

func (w *rewriter) isCaseless() bool { return w.caseless[len(w.caseless)-1] }

func (w *rewriter) copy(n int) {
	w.out.WriteString(w.src[w.at : w.at+n])
	w.at += n
}

// construct writes what is not one literal character: literals before and behind it
// are not one string.
func (w *rewriter) construct(s string) {
	w.literal = ""
	w.out.WriteString(s)
}

// char writes a literal character. In Oniguruma, some strings are one character without
// regard to case, and some characters are strings, which is refused. Groups and counts
// between two characters do not keep it from reading them as a string.
func (w *rewriter) char(r rune) error {
	if !w.isCaseless() {
		w.literal = ""
		w.quote(r)
		return nil
	}
	one := set{{First: r, Last: r}}
	if !w.simple {
		w.literal += string(unitab.Fold(r))
		if end, ok := unitab.EndsInSeveral(w.literal); ok {
			return fmt.Errorf("caseless %q, which is also one character, is not supported", end)
		}
		if err := notSeveral(one); err != nil {
			return err
		}
	}
	if all := unitab.WithCases(one); !slices.Equal(all, one) {
		w.set(all)
		return nil
	}
	w.quote(r)
	return nil
}

// notSeveral refuses characters that are several without regard to case.
func notSeveral(s set) error {
	if r, to, ok := unitab.Several(s); ok {
		return fmt.Errorf("caseless %q, which is also %q, is not supported", r, to)
	}
	return nil
}

func (w *rewriter) quote(r rune) {
	if r < utf8.RuneSelf && !isLetter(byte(r)) && (r < '0' || r > '9') {
		fmt.Fprintf(&w.out, `\u%04X`, r)
		return
	}
	w.out.WriteRune(r)
}

// set writes a set of characters.
func (w *rewriter) set(s set) {
	if len(s) == 0 {
		w.out.WriteString("(?!)")
		return
	}
	w.out.WriteByte('[')
	for _, r := range s {
		w.edge(r.First)
		if r.Last > r.First {
			w.out.WriteByte('-')
			w.edge(r.Last)
		}
	}
	w.out.WriteByte(']')
}

func (w *rewriter) edge(r rune) {
	if r < 0x10000 {
		fmt.Fprintf(&w.out, `\u%04X`, r)
		return
	}
	w.out.WriteRune(r)
}

// border writes \b or \B: a place between a character of a word and none, or another.
func (w *rewriter) border(between bool) {
	in := w.word()
	around := func(before, behind string) {
		w.out.WriteString(before)
		w.set(in)
		w.out.WriteString(behind)
		w.set(in)
		w.out.WriteByte(')')
	}
	w.construct("(?:")
	if between {
		around("(?<=", ")(?!")
		around("|(?<!", ")(?=")
	} else {
		around("(?<=", ")(?=")
		around("|(?<!", ")(?!")
	}
	w.out.WriteByte(')')
}

func (w *rewriter) group() error {
	w.opened = append(w.opened, w.out.Len())
	rest := w.src[w.at:]
	now := w.isCaseless()
	for _, open := range []string{"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"} {
		if strings.HasPrefix(rest, open) {
			w.copy(len(open))
			w.caseless = append(w.caseless, now)
			return nil
		}
	}
	if strings.HasPrefix(rest, "(?i:") {
		w.out.WriteString("(?:")
		w.at += 4
		w.caseless = append(w.caseless, true)
		return nil
	}
	if strings.HasPrefix(rest, "(?") {
		return fmt.Errorf("group %.4q is not supported", rest)
	}
	w.out.WriteString("(?:")
	w.at++
	w.caseless = append(w.caseless, now)
	return nil
}

func (w *rewriter) quantifier() error {
	n, counts := 1, w.src[w.at:w.at+1]
	if counts == "{" {
		n = strings.IndexByte(w.src[w.at:], '}') + 1
		if n <= 2 || strings.Trim(w.src[w.at+1:w.at+n-1], "0123456789,") != "" || w.src[w.at+1:w.at+n-1] == "," {
			return fmt.Errorf("quantifier %.8q is not supported", w.src[w.at:])
		}
		counts = strings.Replace(w.src[w.at:w.at+n], "{,", "{0,", 1)
	} else {
		w.literal = ""
	}
	w.at += n
	more := w.src[w.at:]
	switch {
	case strings.HasPrefix(more, "+"):
		around := [2]string{"(?>", ")"}
		if n > 1 {
			around = w.interval
		}
		w.enclose(counts, around)
		return nil
	case strings.HasPrefix(more, "?") && w.exactly[0] != "" && n > 1 && !strings.Contains(counts, ","):
		w.enclose(counts, w.exactly)
		return nil
	case strings.HasPrefix(more, "?"):
		counts += "?"
		w.at++
	}
	w.out.WriteString(counts)
	return nil
}

// enclose writes a quantifier with one more character behind it, which regexp2 has not,
// as a group: one that gives nothing back, where a + says so.
func (w *rewriter) enclose(counts string, around [2]string) {
	repeated := bytes.Clone(w.out.Bytes()[w.atom:])
	w.out.Truncate(w.atom)
	w.out.WriteString(around[0])
	w.out.Write(repeated)
	w.out.WriteString(counts)
	w.out.WriteString(around[1])
	w.at++
}
