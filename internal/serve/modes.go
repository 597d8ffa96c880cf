package serve

import (
	"fmt"

	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/eppctl/eppctl/internal/core/reason"
)

// bodyMode is how the proxy hands over a body.
type bodyMode = filterv3.ProcessingMode_BodySendMode

// Envoy's names, shortened.
const (
	modeNone       = filterv3.ProcessingMode_NONE
	modeStreamed   = filterv3.ProcessingMode_STREAMED
	modeBuffered   = filterv3.ProcessingMode_BUFFERED
	modePartial    = filterv3.ProcessingMode_BUFFERED_PARTIAL
	modeFullDuplex = filterv3.ProcessingMode_FULL_DUPLEX_STREAMED
	modeGRPC       = filterv3.ProcessingMode_GRPC
)

// streamedHold is the most bytes held back in STREAMED mode: Envoy stops reading
// at its buffer limit (1 MiB by default), so waiting longer waits for ever.
const streamedHold = 1 << 20

// modeNames are the words of --request-body-mode.
var modeNames = map[string]bodyMode{
	"none": modeNone, "streamed": modeStreamed, "buffered": modeBuffered,
	"buffered-partial": modePartial, "full-duplex": modeFullDuplex,
}

// forcedMode reads --request-body-mode: "" and "auto" follow the proxy.
func forcedMode(name string) (mode int, err error) {
	if name == "" || name == "auto" {
		return followProxy, nil
	}
	m, ok := modeNames[name]
	if !ok {
		return 0, fmt.Errorf("request body mode %q: want auto, none, streamed, buffered, buffered-partial or full-duplex", name)
	}
	return int(m), nil
}

// followProxy as a forced mode means: do what protocol_config says.
const followProxy = -1

// plan is how one stream is served.
type plan struct {
	body     bodyMode // request body
	response bodyMode // response body
	// holds: in STREAMED mode the proxy sends the body without waiting for the
	// header response, so the pick can wait for the prompt.
	holds   bool
	observe bool // the proxy ignores answers; it only shows us its traffic
	assumed bool // nobody said the mode
}

// planOf reads a stream's first message. Proxies that do not know
// protocol_config (Envoy before 1.35, agentgateway) are taken to speak full
// duplex, as the protocol text asks; a guess from the first body message is not
// possible, because BUFFERED Envoy waits for the header response first.
func planOf(m *extproc.ProcessingRequest, forced int) plan {
	c := m.GetProtocolConfig()
	p := plan{
		body:     c.GetRequestBodyMode(),
		response: c.GetResponseBodyMode(),
		holds:    c.GetSendBodyWithoutWaitingForHeaderResponse(),
		observe:  m.GetObservabilityMode(),
	}
	if c == nil {
		p.body, p.response, p.assumed = modeFullDuplex, modeFullDuplex, true
	}
	if forced != followProxy {
		p.body, p.assumed = bodyMode(forced), false
	}
	return p
}

// picksAtHeaders reports that no prompt will be seen before the headers must be
// answered: the pick is by load. A mode that is not known is taken to be one of
// these, which cannot leave a request waiting.
func (p plan) picksAtHeaders() bool {
	switch p.body {
	case modeBuffered, modePartial, modeFullDuplex:
		return false
	case modeStreamed:
		return !p.holds
	}
	return true
}

// echoes reports that the proxy keeps nothing: every body byte must come back.
func (p plan) echoes() bool { return p.body == modeFullDuplex || p.body == modeGRPC }

// returns reports the same of the response's body.
func (p plan) returns() bool { return p.response == modeFullDuplex || p.response == modeGRPC }

// changes reports that the request's body can be changed. In STREAMED mode the
// chunks could be, but not the length that has gone before them.
func (p plan) changes(why reason.Code) bool {
	switch p.body {
	case modeFullDuplex, modeBuffered:
		return true
	case modePartial:
		return why != reason.BodyCut
	}
	return false
}

// cost says what the mode costs, for the one log line per listener.
func (p plan) cost() string {
	switch {
	case p.observe:
		return "observing only: answers are ignored by the proxy"
	case p.body == modeNone:
		return "no prompt is seen: picks by load only"
	case p.body == modeGRPC:
		return "gRPC bodies are not read: picks by load only"
	case p.body == modeStreamed && !p.holds:
		return "headers leave before the body comes: picks by load only; use BUFFERED or FULL_DUPLEX_STREAMED"
	case p.body == modeStreamed:
		return "the proxy removes content-length and stops at its buffer limit"
	case p.body == modePartial:
		return "prompts above the proxy's buffer limit are cut: those are picked by load"
	case p.assumed:
		return "the proxy did not say its body mode: full duplex assumed; set request_body_mode if it is another"
	case p.body == modeFullDuplex:
		return "the proxy keeps no body: a picker that dies fails requests with a body"
	}
	return "the proxy buffers the body and can fail open"
}
