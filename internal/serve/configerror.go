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
