package native

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
)

// scanner walks over JSON without a value per token: a tokenizer file has a million
// strings, and each is looked at once. The first fault sticks in err, after which
// everything reads as empty. Small members are cut out with value and read by
// encoding/json.
type scanner struct {
	b   []byte
	i   int
	tmp [2][]byte // unescaped strings, two at a time
	err error
}

func (s *scanner) fail(what string) {
	if s.err == nil {
		s.err = fmt.Errorf("JSON at byte %d: %s", s.i, what)
	}
	s.i = len(s.b)
}

// peek returns the next byte that is not white space; 0 at the end.
func (s *scanner) peek() byte {
	if s.i < len(s.b) && s.b[s.i] > ' ' {
		return s.b[s.i]
	}
	return s.peekFar()
}

// peekFar is peek where white space may come first. Most of it is indentation, half of
// some files, so that blanks are counted eight at a time.
func (s *scanner) peekFar() (c byte) {
	b, i := s.b, s.i
	for ; i < len(b); i++ {
		if c = b[i]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			s.i = i
			return c
		}
		for i+9 <= len(b) {
			other := binary.LittleEndian.Uint64(b[i+1:]) ^ ' '*ones
			if i += bits.TrailingZeros64(other) >> 3; other != 0 {
				break
			}
		}
	}
	s.i = i
	return 0
}

func (s *scanner) expect(c byte) {
	if s.peek() != c {
		s.fail(fmt.Sprintf("want %q", c))
		return
	}
	s.i++
}

// more reads the comma or the closing bracket behind an element.
func (s *scanner) more(end byte) bool {
	switch c := s.peek(); c {
	case ',':
		s.i++
		return true
	case end:
		s.i++
		return false
	}
	s.fail(fmt.Sprintf("want ',' or %q", end))
	return false
}

const (
	ones     = 0x0101010101010101
	highBits = 0x8080808080808080
)

// raw returns a string's body as it stands and whether it holds escapes. Eight bytes
// at a time are searched for a quote or a backslash: a byte of w^c is zero where w
// has c, and (x-1)&^x has the high bit of the lowest zero byte set.
func (s *scanner) raw() (body []byte, escaped bool) {
	s.expect('"')
	b, from, i := s.b, s.i, s.i
	for i < len(b) {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			quote, slash := w^('"'*ones), w^('\\'*ones)
			if z := ((quote-ones)&^quote | (slash-ones)&^slash) & highBits; z != 0 {
				i += bits.TrailingZeros64(z) >> 3
				break
			}
			i += 8
		}
		if i >= len(b) {
			break
		}
		switch b[i] {
		case '"':
			s.i = i + 1
			return b[from:i], escaped
		case '\\':
			escaped = true
			i++
		}
		i++
	}
	s.fail("string is not closed")
	return nil, false
}

// str returns a string. It is valid until the next call with the same slot.
func (s *scanner) str(slot int) []byte {
	body, escaped := s.raw()
	if !escaped {
		return body
	}
	s.tmp[slot] = unescape(s.tmp[slot][:0], body, s)
	return s.tmp[slot]
}

func unescape(dst, b []byte, s *scanner) []byte {
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			dst = append(dst, b[i])
			continue
		}
		i++
		switch c := b[i]; c {
		case '"', '\\', '/':
			dst = append(dst, c)
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		case 'r':
			dst = append(dst, '\r')
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		default: // \u, alone or a pair of surrogates
			n := min(5, len(b)-i)
			if n == 5 && i+n+6 <= len(b) && isHighSurrogate(b[i+1], b[i+2]) && b[i+n] == '\\' && b[i+n+1] == 'u' {
				n += 6
			}
			var v string
			quoted := append(append([]byte(`"\`), b[i:i+n]...), '"')
			if err := json.Unmarshal(quoted, &v); err != nil {
				s.fail("bad escape")
				return dst
			}
			dst = append(dst, v...)
			i += n - 1
		}
	}
	return dst
}

// isHighSurrogate reports whether a \u of these first two digits is the first of a pair:
// D800 to DBFF. D000 to D7FF are characters of Hangul.
func isHighSurrogate(first, second byte) bool {
	return first|0x20 == 'd' && (second == '8' || second == '9' || second|0x20 == 'a' || second|0x20 == 'b')
}

// members calls f for each member of an object; f must read its value.
func (s *scanner) members(f func(name string)) {
	s.expect('{')
	if s.peek() == '}' {
		s.i++
		return
	}
	for s.err == nil {
		name := string(s.str(0))
		s.expect(':')
		f(name)
		if !s.more('}') {
			return
		}
	}
}

// elements calls f for each element of an array; f must read it.
func (s *scanner) elements(f func()) {
	s.expect('[')
	if s.peek() == ']' {
		s.i++
		return
	}
	for s.err == nil {
		f()
		if !s.more(']') {
			return
		}
	}
}

// value skips a value and returns it. It is not checked beyond its brackets.
func (s *scanner) value() []byte {
	c := s.peek()
	from := s.i
	switch c {
	case '"':
		s.raw()
	case '{', '[':
		depth := 0
		for s.i < len(s.b) {
			switch s.b[s.i] {
			case '"':
				s.raw()
				continue
			case '{', '[':
				if depth++; depth > maxNested {
					s.fail("nested too deep")
					return nil
				}
			case '}', ']':
				depth--
			}
			s.i++
			if depth == 0 {
				return s.b[from:s.i]
			}
		}
		s.fail("value is not closed")
		return nil
	default:
		for s.i < len(s.b) {
			if c := s.b[s.i]; c == ',' || c == '}' || c == ']' || c <= ' ' {
				break
			}
			s.i++
		}
	}
	if s.err != nil || s.i == from {
		s.fail("want a value")
		return nil
	}
	return s.b[from:s.i]
}

// decode reads the next value into v.
func (s *scanner) decode(v any) {
	from := s.i
	raw := s.value()
	if s.err == nil {
		if err := json.Unmarshal(raw, v); err != nil {
			s.i = from
			s.fail(err.Error())
		}
	}
}

// number reads an id.
func (s *scanner) number() uint32 {
	c := s.peek()
	if c < '0' || c > '9' {
		s.fail("want a number")
		return 0
	}
	n := uint64(0)
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		n = n*10 + uint64(s.b[s.i]-'0')
		if n > 1<<32-1 {
			s.fail("number is too large")
			return 0
		}
		s.i++
	}
	return uint32(n)
}

// end reports whether only white space is left.
func (s *scanner) end() {
	if s.err == nil && s.peek() != 0 || s.i < len(s.b) {
		s.fail("text behind the value")
	}
}
