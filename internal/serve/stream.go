package serve

import (
	"net/netip"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// running is a request that was routed: what the stream reports back about it.
// All methods may be called at any time and more than once.
type running interface {
	answer() *answer
	pod() *pod.Pod              // that serves it, as far as known
	served(addr netip.AddrPort) // the proxy sent it elsewhere
	status(reply)               // response headers came
	content()                   // the first bytes of the response body came
	spent(usage)                // what the engine says the request cost
	end()                       // the request is over
}

// stream is the protocol state of one ext_proc stream: messages in, answers out
// through send. It opens nothing, reads no clock and starts nothing, so it can
// be driven by a fuzzer. Not safe for concurrent use.
//
// Order of the answers on the request side is always headers, body, trailers,
// whatever the order in which a pick becomes possible: Envoy drops a stream that
// answers the body before the headers.
type stream struct {
	pick   func(*ask) (running, *refusal)
	send   func(*extproc.ProcessingResponse)
	newID  func() string
	bodies *budget // of what all streams hold
	room   int64   // most bytes of that
	limit  int     // most body bytes held
	forced int     // body mode, or followProxy

	plan     plan
	ask      ask
	run      running // nil until routed
	started  bool    // request headers came
	answered bool    // a pick, or a refusal, was sent
	refused  bool    // the proxy answers the client itself: nothing may follow
	unread   bool    // the body is of no known API: an upload, say; it is not held
	bodyDone bool    // end of the request body, or of the headers without one
	pending  int     // STREAMED: body messages still to be answered
	held     int64   // body bytes on account
	resp     response
}

// step handles one message.
func (s *stream) step(m *extproc.ProcessingRequest) {
	if s.refused {
		return
	}
	switch r := m.GetRequest().(type) {
	case *extproc.ProcessingRequest_ResponseHeaders:
		s.responseHeaders(r.ResponseHeaders, m.GetMetadataContext())
	case *extproc.ProcessingRequest_ResponseBody:
		s.responseBody(r.ResponseBody)
	case *extproc.ProcessingRequest_ResponseTrailers:
		s.responseTrailers()
	case *extproc.ProcessingRequest_RequestHeaders:
		s.requestHeaders(r.RequestHeaders, m)
	case *extproc.ProcessingRequest_RequestBody:
		s.requestBody(r.RequestBody)
	case *extproc.ProcessingRequest_RequestTrailers:
		s.requestTrailers()
	}
}

func (s *stream) requestHeaders(h *extproc.HttpHeaders, m *extproc.ProcessingRequest) {
	if s.started {
		return
	}
	s.started = true
	s.plan = planOf(m, s.forced)
	if s.plan.observe {
		s.send = func(*extproc.ProcessingResponse) {}
	}
	s.ask.Head = parseHead(h.GetHeaders())
	if s.ask.Head.RequestID == "" {
		s.ask.Head.RequestID, s.ask.NewID = s.newID(), true
	}
	s.ask.Subset = subsetOf(m.GetMetadataContext())
	s.bodyDone = h.GetEndOfStream()
	s.ask.Bodyless = s.bodyDone
	s.unread = prompt.KindOf(s.ask.Head.Path) == prompt.Unknown
	switch {
	case s.bodyDone, s.plan.picksAtHeaders():
		s.answerHeaders(reason.NoBody)
	case s.unread && s.plan.body == modeFullDuplex && !s.plan.observe:
		s.answerHeaders(reason.UnknownPath)
	case s.ask.Head.Length > int64(s.limit) && !s.unread:
		s.refuse(tooLarge(s.limit))
	case s.plan.body == modeBuffered, s.plan.body == modePartial:
		// Envoy buffers only once the headers are answered.
		s.send(requestHeadersAnswer(nil))
	}
}

func (s *stream) answerHeaders(why reason.Code) {
	if s.decide(why) {
		s.send(requestHeadersAnswer(s.run.answer()))
	}
}

func (s *stream) requestBody(b *extproc.HttpBody) {
	if !s.started || s.bodyDone {
		return // Envoy 1.35 to 1.39 may deliver the last chunk twice
	}
	s.bodyDone = b.GetEndOfStream()
	switch s.plan.body {
	case modeFullDuplex, modeGRPC:
		switch {
		case s.answered: // by the deadline, or at the headers
			s.echo(b.GetBody(), s.bodyDone)
		case !s.hold(b.GetBody()):
		case s.bodyDone:
			s.answerEchoing(reason.None, true)
		case s.crowded():
			s.answerEchoing(reason.BodyCut, false)
		}
	case modeStreamed:
		s.pending++
		switch {
		case s.answered:
			s.answerPending()
		case s.unread:
			s.answerHeld(reason.UnknownPath)
		case !s.hold(b.GetBody()):
		case s.bodyDone:
			s.answerHeld(reason.None)
		case len(s.ask.Body) >= streamedHold, s.crowded():
			s.answerHeld(reason.BodyCut)
		}
	case modePartial:
		// Without an end of stream the body is cut, or trailers follow.
		s.answerBuffered(b.GetBody(), !s.bodyDone)
	default:
		s.answerBuffered(b.GetBody(), false)
	}
}

// requestTrailers end a body that had no end of stream of its own.
func (s *stream) requestTrailers() {
	if !s.started {
		return
	}
	ended := s.bodyDone
	s.bodyDone = true
	if !s.answered {
		switch s.plan.body {
		case modeFullDuplex:
			s.answerEchoing(s.bodyOr(reason.None), false)
		case modeStreamed:
			s.answerHeld(s.bodyOr(reason.None))
		default: // trailers without a body: only the metadata can route
			if s.decide(reason.NoBody) {
				s.send(requestTrailersAnswer(s.run.answer()))
			}
			return
		}
	}
	if !s.refused && !ended {
		s.send(requestTrailersAnswer(nil))
	}
}

// expire answers by load a request whose body did not end in time. The buffering
// modes have no message to answer: there it does nothing.
func (s *stream) expire() {
	if !s.waiting() {
		return
	}
	switch s.plan.body {
	case modeFullDuplex:
		s.answerEchoing(reason.Deadline, false)
	case modeStreamed:
		s.answerHeld(reason.Deadline)
	}
}

// waiting reports that the request's body is awaited before an answer.
func (s *stream) waiting() bool { return s.started && !s.answered && !s.refused }

// settled reports that the stream may be closed with OK: the pick is with the
// proxy, and so is every body byte. Closing earlier cuts the engine's request.
func (s *stream) settled() bool {
	return s.refused || s.answered && (s.bodyDone || !s.plan.echoes())
}

// decide picks. It reports false when the request was refused, and answered so.
func (s *stream) decide(why reason.Code) bool {
	s.answered = true
	s.ask.Why, s.ask.Fixed = why, !s.plan.changes(why)
	run, no := s.pick(&s.ask)
	if no != nil {
		s.refuse(no)
		return false
	}
	s.run = run
	return true
}

func (s *stream) refuse(no *refusal) {
	s.answered, s.refused = true, true
	s.ask.Body, s.ask.Plain = nil, nil
	s.account()
	s.send(no.response(s.ask.Head.RequestID))
}

// answerEchoing is the full-duplex answer: the headers, then every byte held.
func (s *stream) answerEchoing(why reason.Code, eos bool) {
	if !s.decide(why) {
		return
	}
	a := s.run.answer()
	s.send(requestHeadersAnswer(a))
	body := a.body(s.ask.Body)
	s.release()
	if len(body) > 0 || eos {
		s.echo(body, eos)
	}
}

func (s *stream) echo(body []byte, eos bool) {
	chunks(body, eos, func(piece []byte, eos bool) { s.send(streamedRequest(piece, eos)) })
}

// answerHeld is the answer in STREAMED mode: the headers, then one answer per
// body message.
func (s *stream) answerHeld(why reason.Code) {
	if !s.decide(why) {
		return
	}
	s.send(requestHeadersAnswer(s.run.answer()))
	s.release()
	s.answerPending()
}

func (s *stream) answerPending() {
	for ; s.pending > 0; s.pending-- {
		s.send(requestBodyAnswer(nil))
	}
}

// answerBuffered answers the one body message of the buffering modes.
func (s *stream) answerBuffered(body []byte, cut bool) {
	switch {
	case s.answered:
		s.send(requestBodyAnswer(nil))
	case !s.hold(body):
	default:
		why := reason.None
		switch {
		case s.unread:
			why = reason.UnknownPath
		case cut:
			why = reason.BodyCut
		}
		if s.decide(why) {
			s.send(bufferedBodyAnswer(s.run.answer(), s.ask.Body))
		}
		s.release()
	}
}
