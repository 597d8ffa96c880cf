package syntax

import (
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func wordLen(s string) int {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.Is(unicode.Mn, r) {
			return i
		}
	}
	return len(s)
}

// number reads a number at the start of s: its length, 0 for none, and its
// value.
func (l *lexer) number(s string) (int, any) {
	if s[0] < '0' || s[0] > '9' {
		return 0, nil
	}
	// Behind a dot stands an index: x.0.1 is no float.
	if l.pos == 0 || l.src[l.pos-1] != '.' {
		if n := floatLen(s); n > 0 {
			f, _ := strconv.ParseFloat(strings.ReplaceAll(s[:n], "_", ""), 64) // out of range is infinite, as in Python
			return n, f
		}
	}
	n := intLen(s)
	v, _ := new(big.Int).SetString(strings.ReplaceAll(s[:n], "_", ""), 0)
	switch {
	case v == nil: // 00 is Python's only decimal with a leading zero
		return n, int64(0)
	case v.IsInt64():
		return n, v.Int64()
	}
	return n, v
}

func kindOfNumber(v any) kind {
	if _, ok := v.(float64); ok {
		return float
	}
	return integer
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// digitsLen is the length of digits that may be grouped by single underscores.
func digitsLen(s string, ok func(byte) bool) int {
	n := 0
	for n < len(s) && (ok(s[n]) || s[n] == '_' && n > 0 && n+1 < len(s) && ok(s[n+1])) {
		n++
	}
	return n
}

func floatLen(s string) int {
	n := digitsLen(s, isDigit)
	end := 0
	if n+1 < len(s) && s[n] == '.' {
		if d := digitsLen(s[n+1:], isDigit); d > 0 {
			n += 1 + d
			end = n
		}
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		m := n + 1
		if m < len(s) && (s[m] == '+' || s[m] == '-') {
			m++
		}
		if d := digitsLen(s[m:], isDigit); d > 0 {
			end = m + d
		}
	}
	return end
}

func intLen(s string) int {
	if s[0] != '0' {
		return digitsLen(s, isDigit)
	}
	if len(s) > 2 {
		ok := map[byte]func(byte) bool{
			'b': func(c byte) bool { return c == '0' || c == '1' },
			'o': func(c byte) bool { return c >= '0' && c <= '7' },
			'x': func(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' },
		}[s[1]|0x20]
		if ok != nil {
			if n := digitsLen(s[2:], ok); n > 0 {
				return 2 + n
			}
		}
	}
	return digitsLen(s, func(c byte) bool { return c == '0' })
}

// quoted reads a string literal. Its escapes are those of Python; an escape
// that Python does not know stays as it is.
func (l *lexer) quoted(s string) error {
	end := 1
	for end < len(s) && s[end] != s[0] {
		if s[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(s) {
		return l.fail("unexpected char")
	}
	text, err := unescape(s[1:end])
	if err != "" {
		if err == unknownName {
			return &Unsupported{l.line, err}
		}
		return l.fail(err)
	}
	if !utf8.ValidString(text) {
		return &Unsupported{l.line, "a lone surrogate in a string"}
	}
	l.add(str, text)
	l.take(end + 1)
	return nil
}

const unknownName = "an escape by character name"

var simpleEscapes = map[byte]string{'\n': "", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v"}

func unescape(s string) (text, problem string) {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s, ""
	}
	b := append(make([]byte, 0, len(s)), s[:i]...)
	for ; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b = append(b, s[i])
			continue
		}
		i++
		c := s[i]
		if plain, ok := simpleEscapes[c]; ok {
			b = append(b, plain...)
			continue
		}
		width := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		switch {
		case width > 0:
			if i+width >= len(s) {
				return "", "truncated escape"
			}
			r, err := strconv.ParseUint(s[i+1:i+1+width], 16, 32)
			if err != nil {
				return "", "truncated escape"
			}
			if r > unicode.MaxRune {
				return "", "illegal Unicode character"
			}
			if utf8.ValidRune(rune(r)) {
				b = utf8.AppendRune(b, rune(r))
			} else {
				b = append(b, 0xff) // the caller refuses invalid text
			}
			i += width
		case c >= '0' && c <= '7':
			n := 1
			for n < 3 && i+n < len(s) && s[i+n] >= '0' && s[i+n] <= '7' {
				n++
			}
			r, _ := strconv.ParseUint(s[i:i+n], 8, 32)
			b = utf8.AppendRune(b, rune(r))
			i += n - 1
		case c == 'N':
			return "", unknownName
		default:
			b = append(b, '\\', c)
		}
	}
	return string(b), ""
}
