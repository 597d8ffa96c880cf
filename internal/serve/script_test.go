package serve

import (
	"context"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// script drives one stream's machine and keeps what it answered.
type script struct {
	m   stream
	got []*extproc.ProcessingResponse
}

func (r *rig) script() *script {
	s := &script{}
	s.m = stream{
		bodies: &r.processor.bodies, limit: r.picker.requestLimit(), room: heldTogether, forced: r.processor.forced, newID: newRequestID,
		send: func(m *extproc.ProcessingResponse) { s.got = append(s.got, m) },
		pick: func(a *ask) (running, *refusal) {
			f, no := r.picker.Pick(context.Background(), a)
			if no != nil {
				return nil, no
			}
			return f, nil
		},
	}
	return s
}

// step returns the answers to one message.
func (s *script) step(m *extproc.ProcessingRequest) []*extproc.ProcessingResponse {
	before := len(s.got)
	s.m.step(m)
	return s.got[before:]
}
