package serve

import (
	"fmt"
	"strings"
)

// Problem is one thing wrong with the configuration, and where.
type Problem struct {
	File         string `json:"file"`
	Line, Column int    `json:",omitempty"` // 0 = not tied to a place in the file
	Key          string `json:"key,omitempty"`
	Found        string `json:"found"`              // what stands there
	Expected     string `json:"expected,omitempty"` // what may stand there
	Hint         string `json:"hint,omitempty"`
}

func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Found)
	if p.Expected != "" {
		b.WriteString("; expected " + p.Expected)
	}
	if p.Hint != "" {
		b.WriteString("; " + p.Hint)
	}
	return b.String()
}

// ConfigError lists every problem of a configuration, in file order.
type ConfigError struct{ Problems []Problem }

func (e *ConfigError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Nearest returns the candidate that s was probably meant to be, or "". Two
// edits are allowed, one in words of up to four letters: "kv" must not become
// "w" by a guess.
func Nearest(s string, candidates []string) string {
	limit := 2
	if len(s) <= 4 {
		limit = 1
	}
	best, bestAt := "", limit+1
	for _, c := range candidates {
		if d := edits(strings.ToLower(s), c); d < bestAt {
			best, bestAt = c, d
		}
	}
	return best
}

// edits counts the insertions, deletions, replacements and swaps of neighbours
// that turn a into b.
func edits(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
