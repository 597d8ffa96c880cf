package split

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// escape writes what a backslash stands for; inside brackets without brackets.
func (w *rewriter) escape(inside bool) error {
	if w.at+1 >= len(w.src) {
		return fmt.Errorf("pattern ends in a backslash")
	}
	c := w.src[w.at+1]
	w.at += 2
	switch c {
	case 'r', 'n', 't', 'f', 'v':
		w.out.WriteString(`\` + string(c))
		return nil
	case 's', 'S':
		return w.set("White_Space", c == 'S', inside)
	case 'd', 'D':
		return w.set("Nd", c == 'D', inside)
	case 'p', 'P':
		name, ok := strings.CutPrefix(w.src[w.at:], "{")
		end := strings.IndexByte(name, '}')
		if !ok || end < 0 {
			return fmt.Errorf(`\%c without a name in braces`, c)
		}
		name = name[:end]
		w.at += end + 2
		negated := c == 'P'
		if strings.HasPrefix(name, "^") {
			name, negated = name[1:], !negated
		}
		return w.set(name, negated, inside)
	case 'x', 'u':
		return w.code(c)
	}
	if !inside && (c == 'A' || c == 'z') {
		w.out.WriteString(`\` + string(c))
		return nil
	}
	if isPunct(c) || c == ' ' {
		w.quote(rune(c))
		return nil
	}
	return fmt.Errorf(`escape \%c is not supported`, c)
}

func (w *rewriter) code(kind byte) error {
	digits := w.src[w.at:]
	n := 4
	if kind == 'x' {
		n = 2
		if strings.HasPrefix(digits, "{") {
			n = strings.IndexByte(digits, '}') - 1
			digits = digits[1:]
			w.at += 2
		}
	}
	if n < 1 || n > len(digits) {
		return fmt.Errorf(`\%c without its digits`, kind)
	}
	v, err := strconv.ParseUint(digits[:n], 16, 21)
	if err != nil || kind == 'x' && n == 2 && v >= utf8.RuneSelf { // a byte in Oniguruma
		return fmt.Errorf(`\%c%s is not a code point`, kind, digits[:n])
	}
	w.at += n
	w.quote(rune(v))
	return nil
}

func (w *rewriter) set(name string, negated, inside bool) error {
	ranges, ok := unitab.Category(name)
	if !ok {
		return fmt.Errorf("class %q is not supported", name)
	}
	switch {
	case !inside && negated:
		w.out.WriteString("[^")
	case !inside:
		w.out.WriteString("[")
	case negated:
		ranges = unitab.Complement(ranges)
	}
	for _, r := range ranges {
		w.edge(r.First)
		w.out.WriteByte('-')
		w.edge(r.Last)
	}
	if !inside {
		w.out.WriteString("]")
	}
	return nil
}

func (w *rewriter) edge(r rune) {
	if r < 0x10000 {
		fmt.Fprintf(&w.out, `\u%04X`, r)
		return
	}
	w.out.WriteRune(r)
}

// class copies a bracket expression; a caseless one of letters and digits alone.
func (w *rewriter) class() error {
	w.copy(1)
	if w.caseless[len(w.caseless)-1] {
		return w.caselessMembers()
	}
	if strings.HasPrefix(w.src[w.at:], "^") {
		w.copy(1)
	}
	if err := w.members(); err != nil {
		return err
	}
	w.out.WriteByte(']')
	return nil
}

func (w *rewriter) caselessMembers() error {
	n := strings.IndexByte(w.src[w.at:], ']')
	if n < 1 {
		return fmt.Errorf("bracket is empty or not closed")
	}
	for _, r := range w.src[w.at : w.at+n] {
		switch {
		case r < utf8.RuneSelf && isLetter(byte(r)):
			w.out.WriteString(bothCases(r))
		case r >= '0' && r <= '9':
			w.out.WriteRune(r)
		default:
			return fmt.Errorf("caseless bracket with %q is not supported", r)
		}
	}
	w.at += n
	w.copy(1)
	return nil
}

// members copies what stands in brackets, up to behind the closing one. A set inside a
// set adds its members. Refused are intersections (&&), complements and POSIX names in
// it, and a hyphen beside it, which would become a range.
func (w *rewriter) members() error {
	for first := true; ; first = false {
		if w.at >= len(w.src) {
			return fmt.Errorf("bracket is not closed")
		}
		rest := w.src[w.at:]
		r, n := utf8.DecodeRuneInString(rest)
		switch {
		case r == ']' && !first:
			w.at++
			return nil
		case r == ']' || strings.HasPrefix(rest, "&&") || strings.HasPrefix(rest, "-[") || strings.HasPrefix(rest, "[^") || strings.HasPrefix(rest, "[:"):
			return fmt.Errorf("set inside a set like %.2q is not supported", rest)
		case r == '[':
			w.at++
			if err := w.members(); err != nil {
				return err
			}
			if strings.HasPrefix(w.src[w.at:], "-") {
				return fmt.Errorf("hyphen behind a set inside a set is not supported")
			}
		case r == '\\':
			if err := w.escape(true); err != nil {
				return err
			}
		case r == '-':
			w.copy(1)
		default:
			w.at += n
			w.quote(r)
		}
	}
}
