package split

import (
	"context"
	"errors"
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
	// matchLimit ends the search for one match where no deadline does before: the
	// expressions backtrack, and a pattern can be made to need more than the universe
	// has. One match of a real pattern takes microseconds.
	matchLimit = time.Second
	// clockPeriod is how often the engine's clock ticks while a search runs, and for a
	// second behind it. A search goes on for up to two ticks behind its end: with the
	// 100 ms that are usual, as long again as the whole of a common deadline.
	clockPeriod = 5 * time.Millisecond
)

// The period is one of the process, and may not be set once a search has begun.
func init() { regexp2.SetTimeoutCheckPeriod(clockPeriod) }

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
	return &Regex{re}, nil
}

// Matches calls f with the borders of each match in s, in order, until ctx ends. A
// match may be empty, but not right behind another one. A search that is under way at
// ctx's deadline is given up, up to two clockPeriods behind it.
func (r *Regex) Matches(ctx context.Context, s string, f func(from, to int)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// The engine reads the limit before each search. This call has a copy of its own to
	// set it in: what is behind pointers is shared, and safe for concurrent use.
	re := *r.re
	re.MatchTimeout = untilEnd(ctx)
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
	err := re.FindRunesMatches([]rune(s), 0, func(m regexp2.MatchView) bool {
		if at, n, _ := m.GroupRange(0); n > 0 || at != last {
			from := to(at)
			f(from, to(at+n))
			last = at + n
		}
		re.MatchTimeout = untilEnd(ctx)
		ended = ctx.Err()
		return ended == nil
	})
	switch {
	case ended != nil:
		return ended
	case err == nil:
		return nil
	case re.MatchTimeout < matchLimit && !errors.Is(err, regexp2.ErrBacktrackingStackLimit):
		return fmt.Errorf("split pattern: %w", context.DeadlineExceeded)
	}
	return fmt.Errorf("split pattern: %w", errSearch) // err's own text quotes s
}

// errSearch is of a search that the engine has given up: its time or its stack ended.
var errSearch = fmt.Errorf("it takes longer than %v, or more memory than a match may", matchLimit)
