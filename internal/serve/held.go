package serve

import (
	"github.com/eppctl/eppctl/internal/core/reason"
)

// hold keeps body bytes until the pick. The first piece is kept as it came, so
// that a body of one message is never copied; later ones are appended. The
// buffer grows to what content-length announces, but never beyond four times what
// has come, so that an announcement costs no memory.
func (s *stream) hold(piece []byte) bool {
	if s.unread { // never held: uploads may be larger than any prompt
		return true
	}
	held := s.ask.Body
	if len(held)+len(piece) > s.limit {
		s.refuse(tooLarge(s.limit))
		return false
	}
	if len(held) == 0 {
		s.ask.Body = piece
		s.account()
		return true
	}
	if need := len(held) + len(piece); need > cap(held) {
		grown := make([]byte, len(held), s.grown(need))
		copy(grown, held)
		held = grown
	}
	s.ask.Body = append(held, piece...)
	s.account()
	return true
}

// heldTogether is what the bodies of all streams may take, a quarter of what the container
// of deploy/kubernetes has; and there is always room for two of the longest. A client that
// keeps sending a little holds the pick deadline off, and in full duplex Envoy keeps
// nothing back of a body.
const heldTogether = 512 << 20

func roomForBodies(limit int) int64 { return max(heldTogether, 2*int64(limit)) }

// crowded reports that they take more: a body that still comes is then not waited for.
func (s *stream) crowded() bool { return s.bodies.held.Load() > s.room }

// account tells all streams' budget what this one holds now.
func (s *stream) account() {
	now := int64(cap(s.ask.Body))
	s.bodies.held.Add(now - s.held)
	s.held = now
}

func (s *stream) grown(need int) int {
	told := int(min(s.ask.Head.Length, int64(s.limit)))
	if told >= need {
		return min(told, 4*need)
	}
	return 2 * need
}

// release gives up the held body. What is left of a rewrite are the names.
func (s *stream) release() {
	s.ask.Body, s.ask.Plain = nil, nil
	s.account()
	if s.ask.Rewrite != nil {
		s.ask.Rewrite.plain = nil
	}
}

// bodyOr is why when a body came, NoBody when none did.
func (s *stream) bodyOr(why reason.Code) reason.Code {
	if len(s.ask.Body) == 0 {
		return reason.NoBody
	}
	return why
}
