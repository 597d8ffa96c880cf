package serve

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// refusal is a request that is not routed: the HTTP status and an error body of
// the shape OpenAI's clients parse.
type refusal struct {
	Status  int
	Type    string
	Code    string
	Param   string // field at fault, "" = null
	Message string // one sentence, never with prompt text
	Details string // Envoy's RESPONSE_CODE_DETAILS; no spaces
	Drop    string // value of the dropped-reason header, "" = none
	Retry   int    // seconds for retry-after, 0 = none
}

func (r *refusal) Error() string { return r.Message }

// The refusals. Messages are completed at the place that refuses.
func modelNotFound(model string) *refusal {
	return &refusal{
		Status: http.StatusNotFound, Type: "invalid_request_error", Code: "model_not_found", Param: "model",
		Message: "The model " + strconv.Quote(model) + " does not exist.", Details: "eppctl_model_not_found",
	}
}

func notCached() *refusal {
	return &refusal{
		Status: http.StatusPreconditionFailed, Type: "invalid_request_error", Code: "prefix_not_cached",
		Message: "No endpoint holds the prefix of this prompt.", Details: "eppctl_prefix_not_cached",
	}
}

func tooLarge(limit int) *refusal {
	return &refusal{
		Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Code: "request_too_large",
		Message: "The request body is larger than " + strconv.Itoa(limit) + " bytes.", Details: "eppctl_request_too_large",
	}
}

func saturated(retry time.Duration) *refusal {
	return &refusal{
		Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: "saturated",
		Message: "All endpoints are saturated.", Details: "eppctl_saturated", Drop: "rejected-saturated",
		Retry: int(math.Ceil(retry.Seconds())),
	}
}

func noEndpoints(why string) *refusal {
	return &refusal{
		Status: http.StatusServiceUnavailable, Type: "overloaded_error", Code: "service_unavailable",
		Message: why, Details: "eppctl_no_endpoints", Drop: "rejected-no-endpoints",
	}
}

func subsetEmpty() *refusal {
	r := noEndpoints("No endpoint of the gateway's subset can serve the request.")
	r.Details = "eppctl_subset_empty"
	return r
}

// clientGone ends a request whose stream is gone: nobody hears it.
func clientGone() *refusal {
	r := internalError()
	r.Status, r.Code, r.Details = 499, "client_closed_request", "eppctl_client_gone"
	return r
}

// problem is a refusal of the request's body.
func problem(p *prompt.Problem) *refusal {
	return &refusal{Status: p.Status, Type: p.Type, Code: p.Code, Param: p.Param, Message: p.Message, Details: "eppctl_" + p.Code}
}

func internalError() *refusal {
	return &refusal{
		Status: http.StatusInternalServerError, Type: "api_error", Code: "internal_error",
		Message: "The endpoint picker failed.", Details: "eppctl_internal",
	}
}

// body is the OpenAI error object; param is null when no field is at fault.
func (r *refusal) body() []byte {
	var param *string
	if r.Param != "" {
		param = &r.Param
	}
	type detail struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	b, err := json.Marshal(struct {
		Error detail `json:"error"`
	}{detail{r.Message, r.Type, param, r.Code}})
	if err != nil { // strings always marshal
		panic(err)
	}
	return b
}

// response is the ImmediateResponse Envoy turns into the client's answer.
func (r *refusal) response(requestID string) *extproc.ProcessingResponse {
	set := []*corev3.HeaderValueOption{
		setHeader("content-type", "application/json"), // Envoy's default is text/plain
	}
	if requestID != "" {
		set = append(set, setHeader(requestIDHeader, requestID))
	}
	if r.Drop != "" {
		set = append(set, setHeader(dropReason, r.Drop))
	}
	if r.Retry > 0 {
		set = append(set, setHeader("retry-after", strconv.Itoa(r.Retry)))
	}
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ImmediateResponse{
		ImmediateResponse: &extproc.ImmediateResponse{
			Status:  &typev3.HttpStatus{Code: typev3.StatusCode(r.Status)},
			Headers: &extproc.HeaderMutation{SetHeaders: set},
			Body:    r.body(),
			Details: r.Details,
		},
	}}
}

// verdict turns an outcome into what the client is told; nil = routed.
func verdict(c *pick.Card, q *pick.Query, ifAvailable bool) *refusal {
	switch c.Outcome {
	case pick.Overloaded:
		return saturated(c.RetryAfter())
	case pick.NoEndpoint:
		if q.Subset != nil {
			return subsetEmpty()
		}
		if c.Why == reason.NoPods {
			return noEndpoints("There are no endpoints.")
		}
		return noEndpoints("No endpoint can serve the request" + commonest(c) + ".")
	}
	if ifAvailable && c.WinnerRow().Match.Depth == 0 {
		return notCached()
	}
	return nil
}

// commonest names the filter that left most pods out.
func commonest(c *pick.Card) string {
	var count [256]int
	best := pick.Scored
	for i := range c.Rows {
		v := c.Rows[i].Verdict
		if count[v]++; count[v] > count[best] || best == pick.Scored {
			best = v
		}
	}
	if best == pick.Scored {
		return ""
	}
	return ": " + strconv.Itoa(count[best]) + " of " + strconv.Itoa(len(c.Rows)) + " are left out by " + best.String()
}
