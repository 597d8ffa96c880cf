package serve

import (
	"net/http"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/eppctl/eppctl/internal/core/reason"
)

// response is what the response side has shown so far.
type response struct {
	headers bool         // response headers came and were answered
	sse     bool         // the response is an event stream
	whole   bool         // the engine had all of it when it sent the headers
	beyond  bool         // a body or trailers came behind them
	done    bool         // its end was seen
	names   *renamer     // the client asked for the model by another name
	usage   *usageReader // the body is shown and can be read
}

// responseHeaders answers before anything else: the proxy's message timeout
// bounds this answer in every mode, and missing it turns a response that the
// engine has begun into a 504.
func (s *stream) responseHeaders(h *extproc.HttpHeaders, md *corev3.Metadata) {
	s.resp.names = s.renames()
	s.send(responseHeadersAnswer(s.resp.names != nil))
	s.resp.headers = true
	if s.plan.observe && s.waiting() { // the request body is not shown to us
		s.decide(s.bodyOr(reason.BodyCut))
	}
	r := readReply(h, md)
	r.unseen = s.plan.response == modeNone || s.plan.assumed
	s.resp.sse, s.resp.whole = r.sse, r.whole
	if r.encoded {
		s.resp.names = nil
	} else if r.code == http.StatusOK {
		s.resp.usage = &usageReader{}
	}
	if s.run == nil {
		return
	}
	if r.servedBy.IsValid() {
		s.run.served(r.servedBy)
	}
	s.run.status(r)
	if h.GetEndOfStream() {
		s.over()
	}
}

// renames returns what puts the client's own name for the model back, where the
// response passes through us.
func (s *stream) renames() *renamer {
	if s.run == nil || !s.plan.returns() {
		return nil
	}
	w := s.run.answer().Rewrite
	if w == nil || w.asked == "" {
		return nil
	}
	return &renamer{served: w.served, asked: w.asked}
}

func (s *stream) responseBody(b *extproc.HttpBody) {
	s.resp.beyond = s.resp.headers
	body, end := b.GetBody(), b.GetEndOfStream()
	if s.plan.returns() {
		s.pass(body, end)
	} else {
		s.send(responseBodyAnswer())
	}
	if s.resp.usage != nil {
		s.resp.usage.add(body)
	}
	if s.run != nil && len(body) > 0 {
		s.run.content()
	}
	if end {
		s.over()
	}
}

// pass returns response bytes to the proxy, which keeps none.
func (s *stream) pass(body []byte, end bool) {
	if s.resp.names != nil {
		if body = s.resp.names.next(body, end); len(body) == 0 && !end {
			return
		}
	}
	chunks(body, end, func(piece []byte, eos bool) { s.send(streamedResponse(piece, eos)) })
}

// responseTrailers end a body that had no end of stream of its own.
func (s *stream) responseTrailers() {
	s.resp.beyond = s.resp.headers
	if s.resp.names != nil && !s.resp.done {
		if rest := s.resp.names.next(nil, true); len(rest) > 0 {
			s.send(streamedResponse(rest, false))
		}
	}
	s.send(responseTrailersAnswer())
	s.over()
}

// over notes the end of the response; trailers and the end of the stream may
// still follow.
func (s *stream) over() {
	s.resp.done = true
	if s.run == nil {
		return
	}
	if s.resp.usage != nil {
		if u, told := s.resp.usage.result(); told {
			s.run.spent(u)
		}
		s.resp.usage = nil
	}
	s.run.end()
}
