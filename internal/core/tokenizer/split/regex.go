package split

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// Regex is a pattern without a hand-written splitter.
type Regex struct{ re *regexp2.Regexp }

const (
	// maxPattern is the longest pattern that is read, in bytes; the longest seen,
	// that of o200k, has some 400.
	maxPattern = 4 << 10
	// maxWritten is the longest pattern with its classes written out, of which each
	// takes kilobytes: that of o200k has 68 kB, \b has 33.
	maxWritten = 1 << 20
	// matchLimit ends the search for one match: the expressions backtrack, and a
	// pattern can be made to need more than the universe has. One match of a real
	// pattern takes microseconds.
	matchLimit = time.Second
)

// Compile reads a pattern as Hugging Face tokenizers does (Oniguruma, its syntax for
// Ruby) and writes its classes out from the frozen tables. It is an error if the pattern
// uses what it does not know to mean the same in both.
func Compile(pattern string) (*Regex, error) { return compile(pattern, &oniguruma) }

// CompileRanked reads a pattern of ranks, as tiktoken does.
func CompileRanked(pattern string) (*Regex, error) { return compile(pattern, &fancy) }

func compile(pattern string, d *dialect) (*Regex, error) {
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
