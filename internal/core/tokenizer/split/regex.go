package split

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// Regex is a pattern without a hand-written splitter.
type Regex struct{ re *regexp2.Regexp }

const (
	// maxPattern is the longest pattern that is read, in bytes; the longest seen,
	// that of o200k, has some 400. Each class it names is written out to kilobytes.
	maxPattern = 4 << 10
	// matchLimit ends the search for one match: the expressions backtrack, and a
	// pattern can be made to need more than the universe has. One match of a real
	// pattern takes microseconds.
	matchLimit = time.Second
)

// Compile reads a pattern as Hugging Face tokenizers does (Oniguruma, its syntax for
// Ruby) and writes its classes out from the frozen tables. It is an error if the pattern
// uses what it does not know to mean the same in both.
func Compile(pattern string) (*Regex, error) { return compile(pattern, oniguruma) }

// CompileRanked reads a pattern of ranks, as tiktoken does.
func CompileRanked(pattern string) (*Regex, error) { return compile(pattern, fancy) }

func compile(pattern string, d dialect) (*Regex, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("split pattern: its %d bytes are more than %d", len(pattern), maxPattern)
	}
	w := rewriter{src: pattern, dialect: d}
	if err := w.pattern(); err != nil {
		return nil, fmt.Errorf("split pattern at byte %d: %w", w.at, err)
	}
	re, err := regexp2.Compile(w.out.String(), regexp2.None)
	if err != nil {
		return nil, fmt.Errorf("split pattern: %w", err)
	}
	re.MatchTimeout = matchLimit
	return &Regex{re}, nil
}

// Matches calls f with the borders of each match in s, in order, until ctx ends. A
// match may be empty, but not right behind another one.
func (r *Regex) Matches(ctx context.Context, s string, f func(from, to int)) error {
	var ended error
	runes, bytes := 0, 0 // the same place in s
	last := -1           // the end of the match before
	to := func(rune int) int {
		for ; runes < rune; runes++ {
			_, n := utf8.DecodeRuneInString(s[bytes:])
			bytes += n
		}
		return bytes
	}
	err := r.re.FindRunesMatches([]rune(s), 0, func(m regexp2.MatchView) bool {
		if at, n, _ := m.GroupRange(0); n > 0 || at != last {
			from := to(at)
			f(from, to(at+n))
			last = at + n
		}
		ended = ctx.Err()
		return ended == nil
	})
	if ended != nil {
		return ended
	}
	if err != nil { // its own text quotes s
		return fmt.Errorf("split pattern: %w", errSearch)
	}
	return nil
}

// errSearch is of a search that the engine has given up: its time or its stack ended.
var errSearch = fmt.Errorf("it takes longer than %v, or more memory than a match may", matchLimit)

// dialect is what constructs mean in one engine and not in another.
type dialect struct {
	ofLines  map[rune]string // what ., $ and ^ are
	interval [2]string       // what + behind {n,m} makes of it
	exactly  bool            // ? behind {n} is not "as few as possible", but "or none"
}

var (
	// In Oniguruma a line ends in front of a line feed, always, and none begins behind
	// the line feed that ends the text.
	oniguruma = dialect{map[rune]string{'.': `[^\n]`, '$': `(?=\n|\z)`, '^': `(?:\A|(?<=\n)(?!\z))`}, [2]string{"(?:", ")+"}, true}
	// fancy is fancy-regex, of Rust.
	fancy = dialect{map[rune]string{'.': `[^\n]`, '$': `\z`, '^': `\A`}, [2]string{"(?>", ")"}, false}
)

// rewriter turns a pattern into one for regexp2 that names no Unicode class.
type rewriter struct {
	dialect
	src      string
	at       int
	out      bytes.Buffer
	caseless []bool // one per open group
	opened   []int  // where in out each open group begins
	atom     int    // where in out begins what a quantifier would repeat
	literal  string // the letters since the last construct, inside a caseless group
}

func (w *rewriter) pattern() error {
	w.caseless = []bool{false}
	for w.at < len(w.src) {
		r, n := utf8.DecodeRuneInString(w.src[w.at:])
		if !isLetter(byte(min(r, 0x7F))) {
			w.literal = ""
		}
		if !strings.ContainsRune(")?*+{", r) {
			w.atom = w.out.Len()
		}
		var err error
		switch r {
		case '\\':
			err = w.escape(false)
		case '[':
			err = w.class()
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
			w.copy(1)
		case '?', '*', '+', '{':
			err = w.quantifier()
		case '^', '$', '.':
			w.at++
			w.out.WriteString(w.ofLines[r])
		default:
			err = w.char(r, n)
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

func (w *rewriter) copy(n int) {
	w.out.WriteString(w.src[w.at : w.at+n])
	w.at += n
}

// char writes a literal character. Without regard to case, s is U+017F too and k is
// U+212A; some pairs of letters fold to one character, which is refused.
func (w *rewriter) char(r rune, n int) error {
	w.at += n
	if !w.caseless[len(w.caseless)-1] {
		w.quote(r)
		return nil
	}
	if r >= utf8.RuneSelf {
		return fmt.Errorf("caseless %q is not supported", r)
	}
	if !isLetter(byte(r)) {
		w.quote(r)
		return nil
	}
	low := r | 0x20
	w.literal += string(low)
	for _, pair := range []string{"ss", "st", "ff", "fi", "fl"} {
		if strings.HasSuffix(w.literal, pair) {
			return fmt.Errorf("caseless %q, which is also one character, is not supported", pair)
		}
	}
	w.out.WriteString("[" + bothCases(r) + "]")
	return nil
}

// bothCases are the characters that an ASCII letter is without regard to case.
func bothCases(r rune) string {
	low := r | 0x20
	both := string(low) + string(low-0x20)
	switch low {
	case 's':
		both += "\u017F"
	case 'k':
		both += "\u212A"
	}
	return both
}

func (w *rewriter) quote(r rune) {
	if r < utf8.RuneSelf && !isLetter(byte(r)) && (r < '0' || r > '9') {
		fmt.Fprintf(&w.out, `\u%04X`, r)
		return
	}
	w.out.WriteRune(r)
}

func (w *rewriter) group() error {
	w.opened = append(w.opened, w.out.Len())
	rest := w.src[w.at:]
	now := w.caseless[len(w.caseless)-1]
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
	n := 1
	if w.src[w.at] == '{' {
		n = strings.IndexByte(w.src[w.at:], '}') + 1
		if n == 0 || strings.Trim(w.src[w.at+1:w.at+n-1], "0123456789,") != "" || n == 2 || w.src[w.at+1] == ',' {
			return fmt.Errorf("quantifier %.8q is not supported", w.src[w.at:])
		}
	}
	if w.at+n < len(w.src) {
		switch w.src[w.at+n] {
		case '+':
			around := [2]string{"(?>", ")"}
			if n > 1 {
				around = w.interval
			}
			w.enclose(n, around)
			return nil
		case '?':
			if w.exactly && n > 1 && !strings.Contains(w.src[w.at:w.at+n], ",") {
				return fmt.Errorf("quantifier %q is not supported", w.src[w.at:w.at+n+1])
			}
			n++
		}
	}
	w.copy(n)
	return nil
}

// enclose writes a quantifier of n bytes with a + behind it, which regexp2 has not, as a
// group: one that gives nothing back, where the + says so.
func (w *rewriter) enclose(n int, around [2]string) {
	repeated := bytes.Clone(w.out.Bytes()[w.atom:])
	w.out.Truncate(w.atom)
	w.out.WriteString(around[0])
	w.out.Write(repeated)
	w.copy(n)
	w.out.WriteString(around[1])
	w.at++
}
