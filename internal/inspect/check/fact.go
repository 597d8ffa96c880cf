package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// Fact says in one line what came. Nothing is neither good nor bad, and what cannot
// be read at all is bad.
func (s *stream) Fact(w witness) feed.Fact {
	c := &s.content
	f := feed.Fact{Pod: s.Pod.Name, What: "stream", OK: true}
	switch {
	case s.messages+s.replay.batches == 0:
		f.OK, f.Skipped = false, true
		f.Detail = fmt.Sprintf("rank %d: nothing came in %s%s", s.Rank, seconds(w.Lasted), s.connected(w))
		return f
	case c.batches == c.undecodable && c.batches > 0:
		f.OK, f.Code = false, string(reason.Undecodable)
	case c.batches == 0 && len(s.shapes) > 0:
		f.OK, f.Code = false, string(reason.WrongFraming)
	}
	parts := []string{fmt.Sprintf("rank %d: %s live%s", s.Rank, out.Plural(s.messages, "message"), s.connected(w))}
	if s.replay.batches > 0 {
		parts = append(parts, fmt.Sprintf("%d replayed from number %d", s.replay.batches, s.replay.first))
	}
	if c.events > 0 {
		parts = append(parts, fmt.Sprintf("stored %d, removed %d, cleared %d", c.stored, c.removed, c.cleared))
	}
	if n := c.size(); n > 0 {
		parts = append(parts, fmt.Sprintf("blocks of %d", n))
	}
	if len(c.forms) > 0 {
		parts = append(parts, "hashes as "+words(c.forms))
	}
	if len(c.layouts) > 0 {
		parts = append(parts, words(c.layouts))
	}
	if s.dropped > 0 {
		parts = append(parts, fmt.Sprintf("%d messages missed here", s.dropped))
	}
	f.Detail = strings.Join(parts, ", ")
	return f
}

// soon is within what a connection takes on any network: later ones are told of.
const soon = time.Second

// connected says when a stream was connected, if not at once, and whether it is.
func (s *stream) connected(w witness) (text string) {
	if after := time.Duration(s.up - w.From); s.ups > 0 && after > soon {
		text = ", connected after " + seconds(after)
	}
	if s.down != "" {
		text += ", not connected at the end"
	}
	return text
}
