package split

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// escape writes what a backslash outside brackets stands for.
func (w *rewriter) escape() error {
	switch c := w.next(1); c {
	case 'A', 'z':
		w.at += 2
		w.construct(`\` + string(c))
		return nil
	case 'Z':
		w.at += 2
		w.construct(w.places[c])
		return nil
	case 'b', 'B':
		w.at += 2
		w.border(c == 'b')
		return nil
	case 'R':
		w.at += 2
		w.construct(`(?>\r\n|[\n-\r\u0085\u2028\u2029])`)
		return nil
	case 'N', 'O', 'w', 'W':
		w.at += 2
		s := set(nil)
		switch c {
		case 'N':
			s = newline
		case 'w', 'W':
			s = w.word()
		}
		if c != 'w' {
			s = unitab.Complement(s)
		}
		w.construct("")
		w.set(s)
		return nil
	}
	m, err := w.escaped()
	if err != nil {
		return err
	}
	if !m.class {
		return w.char(m.set[0].First)
	}
	w.construct("")
	w.set(m.set)
	return nil
}

// next returns the byte so far behind the place, 0 behind the end.
func (w *rewriter) next(n int) byte {
	if w.at+n < len(w.src) {
		return w.src[w.at+n]
	}
	return 0
}

// member is what a backslash or a character in brackets stands for: one character, or
// a class of them.
type member struct {
	set   set
	class bool
}

func single(r rune) member { return member{set: set{{First: r, Last: r}}} }

func class(s set, negated bool) member {
	if negated {
		s = unitab.Complement(s)
	}
	return member{s, true}
}

// escaped reads what a backslash stands for inside and outside brackets.
func (w *rewriter) escaped() (member, error) {
	if w.at+1 >= len(w.src) {
		return member{}, fmt.Errorf("pattern ends in a backslash")
	}
	c := w.src[w.at+1]
	w.at += 2
	switch c {
	case 'a', 'e', 'f', 'n', 'r', 't', 'v':
		return single(map[byte]rune{'a': '\a', 'e': 0x1B, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}[c]), nil
	case 's', 'S':
		return class(must("White_Space"), c == 'S'), nil
	case 'd', 'D':
		return class(must("Nd"), c == 'D'), nil
	case 'h', 'H':
		return class(hexDigit, c == 'H'), nil
	case 'p', 'P':
		return w.named(c)
	case 'x', 'u':
		return w.code(c)
	}
	if isPunct(c) || c == ' ' {
		return single(rune(c)), nil
	}
	return member{}, fmt.Errorf(`escape \%c is not supported`, c)
}

// named reads the name of a property: in braces, or of one letter.
func (w *rewriter) named(c byte) (member, error) {
	name := w.src[w.at:min(w.at+1, len(w.src))]
	negated := c == 'P'
	switch {
	case name == "{":
		end := strings.IndexByte(w.src[w.at:], '}')
		if end < 0 {
			return member{}, fmt.Errorf(`\%c without a name in braces`, c)
		}
		name = w.src[w.at+1 : w.at+end]
		w.at += end
		if strings.HasPrefix(name, "^") {
			name, negated = name[1:], !negated
		}
	case !w.simple: // to Oniguruma, p and a letter
		return member{}, fmt.Errorf(`\%c without a name in braces`, c)
	}
	w.at++
	s, ok := w.property(name)
	if !ok {
		return member{}, fmt.Errorf("class %q is not supported", name)
	}
	return class(w.folded(s, w.simple), negated), nil
}

func (w *rewriter) code(kind byte) (member, error) {
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
		return member{}, fmt.Errorf(`\%c without its digits`, kind)
	}
	v, err := strconv.ParseUint(digits[:n], 16, 21)
	if err != nil || !utf8.ValidRune(rune(v)) || kind == 'x' && n == 2 && v >= utf8.RuneSelf { // a byte in Oniguruma
		return member{}, fmt.Errorf(`\%c%s is not a code point`, kind, digits[:n])
	}
	w.at += n
	return single(rune(v)), nil
}
