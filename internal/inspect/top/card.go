package top

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/explain"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

func newCard(id string, raw []byte, err error) card {
	if err != nil {
		return card{id: id, err: err}
	}
	var x pick.Explanation
	if err := json.Unmarshal(raw, &x); err != nil || x.Kind != "Explanation" {
		return card{id: id, err: &inspect.Error{Kind: inspect.Failed, Code: "E_ANSWER", What: "the answer is no Explanation", Err: err}}
	}
	return card{id: id, x: &x}
}

// explained is the card as `eppctl explain` prints it, on a terminal of w columns.
func explained(x *pick.Explanation, w int, now time.Time) []string {
	var b strings.Builder
	s := &out.Streams{OutTTY: true, Width: w, Color: true}
	if err := explain.Render(&b, s, x, explain.Options{Now: now}); err != nil {
		return []string{line(w, text(warn, err.Error()))} // a Builder does not fail
	}
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

// lines is what is shown of a card.
func (c *card) lines(w int, now time.Time) []string {
	switch {
	case c.err != nil:
		var lines []string
		for _, part := range out.Wrap(out.Clean(c.err.Error()), max(w, 1)) {
			lines = append(lines, line(w, text(warn, part)))
		}
		return lines
	case c.x == nil:
		return []string{line(w, text(dim, "asking for "+c.id))}
	}
	return explained(c.x, w, now)
}
