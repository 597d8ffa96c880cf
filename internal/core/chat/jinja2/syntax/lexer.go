package syntax

import (
	"strings"
	"unicode/utf8"
)

// lexer cuts a source into tokens. White space control is done here, once: what
// becomes data is what is printed. The rules are those of Jinja2's lexer, whose
// order matters: the text before a tag is cut by the tag's sign or, for blocks
// and comments, by lstrip_blocks; what follows a tag by its sign or by
// trim_blocks.
type lexer struct {
	src    string
	pos    int
	line   int
	tokens []token

	// lineStart: the last thing matched ended with a newline, or nothing was
	// matched yet.
	lineStart bool
}

func lex(source string) ([]token, error) {
	l := lexer{src: normalize(source), line: 1, lineStart: true}
	for l.pos < len(l.src) {
		if err := l.root(); err != nil {
			return nil, err
		}
	}
	l.add(eof, "")
	return l.tokens, nil
}

// normalize makes every newline \n and drops the last one, as
// keep_trailing_newline=False does.
func normalize(s string) string {
	if strings.IndexByte(s, '\r') >= 0 {
		s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	}
	return strings.TrimSuffix(s, "\n")
}

func (l *lexer) add(k kind, text string) {
	l.tokens = append(l.tokens, token{kind: k, text: text, line: l.line})
}

// take moves past n bytes.
func (l *lexer) take(n int) string {
	s := l.src[l.pos : l.pos+n]
	l.pos += n
	l.line += strings.Count(s, "\n")
	if n > 0 {
		l.lineStart = s[n-1] == '\n'
	}
	return s
}

func (l *lexer) fail(text string) error { return &Error{l.line, text} }

// root reads data up to the next tag, and the tag.
func (l *lexer) root() error {
	at := tagStart(l.src[l.pos:])
	if at < 0 {
		l.add(data, l.src[l.pos:])
		l.take(len(l.src) - l.pos)
		return nil
	}
	text, starting := l.src[l.pos:l.pos+at], l.lineStart
	tag := l.src[l.pos+at:]
	sign := signOf(tag[2:])
	l.data(text, sign, tag[1] != '{', starting)
	if n := rawBegin(tag); n > 0 {
		l.take(at + n)
		return l.raw()
	}
	l.take(at + 2 + len(sign))
	switch tag[1] {
	case '#':
		return l.comment()
	case '%':
		l.add(blockBegin, "")
		return l.tag("%}", blockEnd)
	}
	l.add(varBegin, "")
	return l.tag("}}", varEnd)
}

func tagStart(s string) int {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '{')
		if i < 0 || from+i+1 >= len(s) {
			return -1
		}
		if c := s[from+i+1]; c == '{' || c == '%' || c == '#' {
			return from + i
		}
		from += i + 1
	}
}

func signOf(s string) string {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return s[:1]
	}
	return ""
}

// data adds the text before a tag. starting: the text begins a line.
func (l *lexer) data(text, sign string, lstrip, starting bool) {
	switch {
	case sign == "-":
		text = strings.TrimRightFunc(text, IsSpace)
	case sign == "" && lstrip:
		from := strings.LastIndexByte(text, '\n') + 1
		if (from > 0 || starting) && strings.TrimLeftFunc(text[from:], IsSpace) == "" {
			text = text[:from]
		}
	}
	if text != "" {
		l.add(data, text)
	}
}

// rawBegin returns the length of a raw tag at the start of s, or 0.
func rawBegin(s string) int {
	rest := s[2:]
	if s[1] != '%' {
		return 0
	}
	rest = strings.TrimLeftFunc(rest[len(signOf(rest)):], IsSpace)
	rest, ok := strings.CutPrefix(rest, "raw")
	if !ok {
		return 0
	}
	rest = strings.TrimLeftFunc(rest, IsSpace)
	if after, ok := strings.CutPrefix(rest, "-%}"); ok {
		return len(s) - len(strings.TrimLeftFunc(after, IsSpace))
	}
	if after, ok := strings.CutPrefix(rest, "%}"); ok {
		return len(s) - len(after)
	}
	return 0
}

// raw reads up to endraw.
func (l *lexer) raw() error {
	for from := l.pos; ; {
		i := strings.Index(l.src[from:], "{%")
		if i < 0 {
			return l.fail("Missing end of raw directive")
		}
		from += i
		rest := l.src[from+2:]
		sign := signOf(rest)
		rest = strings.TrimLeftFunc(rest[len(sign):], IsSpace)
		rest, ok := strings.CutPrefix(rest, "endraw")
		n := 0
		if ok {
			rest = strings.TrimLeftFunc(rest, IsSpace)
			n = tagEnd(rest, "%}", true)
		}
		if n > 0 {
			l.data(l.src[l.pos:from], sign, true, l.lineStart)
			l.take(len(l.src) - l.pos - len(rest) + n)
			return nil
		}
		from += 2
	}
}

// comment reads up to the end of a comment.
func (l *lexer) comment() error {
	for from := l.pos; ; from++ {
		i := strings.Index(l.src[from:], "#}")
		if i < 0 {
			return l.fail("Missing end of comment tag")
		}
		from += i
		if from > l.pos && (l.src[from-1] == '-' || l.src[from-1] == '+') {
			from--
		}
		if n := tagEnd(l.src[from:], "#}", true); n > 0 {
			l.take(from - l.pos + n)
			return nil
		}
	}
}

// tagEnd returns the length of the end of a tag at the start of s, with the
// white space it takes along, or 0.
func tagEnd(s, closer string, block bool) int {
	if rest, ok := strings.CutPrefix(s, "-"+closer); ok {
		return len(s) - len(strings.TrimLeftFunc(rest, IsSpace))
	}
	if block && strings.HasPrefix(s, "+"+closer) {
		return 1 + len(closer)
	}
	if rest, ok := strings.CutPrefix(s, closer); ok {
		if block && strings.HasPrefix(rest, "\n") {
			return len(closer) + 1
		}
		return len(closer)
	}
	return 0
}

// tag reads the inside of a statement or print tag.
func (l *lexer) tag(closer string, end kind) error {
	var open []byte // brackets that are to be closed, by what closes them
	for l.pos < len(l.src) {
		s := l.src[l.pos:]
		if len(open) == 0 {
			if n := tagEnd(s, closer, end == blockEnd); n > 0 {
				l.add(end, "")
				l.take(n)
				return nil
			}
		}
		if r, n := utf8.DecodeRuneInString(s); IsSpace(r) {
			l.take(n)
			continue
		}
		before := len(l.tokens)
		if err := l.word(s); err != nil {
			return err
		}
		switch t := l.tokens[before]; {
		case t.op("("):
			open = append(open, ')')
		case t.op("["):
			open = append(open, ']')
		case t.op("{"):
			open = append(open, '}')
		case t.op(")"), t.op("]"), t.op("}"):
			if len(open) == 0 || open[len(open)-1] != t.text[0] {
				return l.fail("unexpected '" + t.text + "'")
			}
			open = open[:len(open)-1]
		}
	}
	return nil // the parser misses the end
}

var operators = []string{"//", "**", "==", "!=", ">=", "<=", // longest first
	"+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}

// word reads one token inside a tag. s is the rest of the source.
func (l *lexer) word(s string) error {
	if n, v := l.number(s); n > 0 {
		l.tokens = append(l.tokens, token{kind: kindOfNumber(v), text: s[:n], value: v, line: l.line})
		l.take(n)
		return nil
	}
	if n := wordLen(s); n > 0 {
		for _, r := range s[:n] {
			if r >= utf8.RuneSelf {
				return &Unsupported{l.line, "a name beyond ASCII"}
			}
		}
		if s[0] >= '0' && s[0] <= '9' {
			return l.fail("Invalid character in identifier")
		}
		l.add(name, s[:n])
		l.take(n)
		return nil
	}
	if s[0] == '\'' || s[0] == '"' {
		return l.quoted(s)
	}
	for _, op := range operators {
		if strings.HasPrefix(s, op) {
			l.add(operator, op)
			l.take(len(op))
			return nil
		}
	}
	return l.fail("unexpected char")
}
