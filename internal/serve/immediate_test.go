package serve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
)

func TestNoEndpoint(t *testing.T) {
	r := newRig(t, rigOptions{pods: []pod.Spec{}})
	for _, eos := range []bool{true, false} {
		t.Run(fmt.Sprintf("EP-21 RS-05/eos=%v", eos), func(t *testing.T) {
			list := []*extproc.ProcessingRequest{reqHeaders(fullDuplex, eos, completionsPath)}
			if !eos {
				list = append(list, reqBody(completion("m", ids(1, 64)), true))
			}
			im := r.ask(list...)[0].GetImmediateResponse()
			if im.GetStatus().GetCode() != 503 || im.GetDetails() != "eppctl_no_endpoints" {
				t.Fatalf("%v", im)
			}
			checkError(t, im, "overloaded_error", "service_unavailable", nil)
			if got := immediateHeader(im, dropReason); got != "rejected-no-endpoints" {
				t.Fatalf("drop reason %q", got)
			}
		})
	}
}

func immediateHeader(im *extproc.ImmediateResponse, key string) string {
	for _, h := range im.GetHeaders().GetSetHeaders() {
		if h.GetHeader().GetKey() == key {
			return string(h.GetHeader().GetRawValue())
		}
	}
	return ""
}

// checkError compares the OpenAI error object, field by field and no more.
func checkError(t *testing.T, im *extproc.ImmediateResponse, kind, code string, param any) {
	t.Helper()
	var body map[string]map[string]any
	if err := json.Unmarshal(im.GetBody(), &body); err != nil {
		t.Fatalf("%v in %s", err, im.GetBody())
	}
	e := body["error"]
	if len(body) != 1 || len(e) != 4 || e["type"] != kind || e["code"] != code || e["param"] != param || e["message"] == "" {
		t.Fatalf("error object %s", im.GetBody())
	}
	if got := immediateHeader(im, "content-type"); got != "application/json" {
		t.Fatalf("content-type %q", got)
	}
	if strings.ContainsAny(im.GetDetails(), " \t") || im.GetDetails() == "" {
		t.Fatalf("details %q", im.GetDetails())
	}
	if immediateHeader(im, requestIDHeader) == "" {
		t.Fatal("no request id")
	}
}

func TestErrorsExactly(t *testing.T) {
	model := any("model")
	for _, c := range []struct {
		r          *refusal
		status     int
		kind, code string
		param      any
		details    string
	}{
		{modelNotFound("x"), 404, "invalid_request_error", "model_not_found", model, "eppctl_model_not_found"},
		{notCached(), 412, "invalid_request_error", "prefix_not_cached", nil, "eppctl_prefix_not_cached"},
		{tooLarge(5), 413, "invalid_request_error", "request_too_large", nil, "eppctl_request_too_large"},
		{saturated(time.Second), 429, "rate_limit_error", "saturated", nil, "eppctl_saturated"},
		{internalError(), 500, "api_error", "internal_error", nil, "eppctl_internal"},
		{noEndpoints("There are none."), 503, "overloaded_error", "service_unavailable", nil, "eppctl_no_endpoints"},
		{subsetEmpty(), 503, "overloaded_error", "service_unavailable", nil, "eppctl_subset_empty"},
	} {
		t.Run("EU-10/"+c.details, func(t *testing.T) {
			im := c.r.response("id").GetImmediateResponse()
			if int(im.GetStatus().GetCode()) != c.status || im.GetDetails() != c.details {
				t.Fatalf("%v", im)
			}
			checkError(t, im, c.kind, c.code, c.param)
		})
	}
	r := newRig(t, rigOptions{config: func(c *Config) { c.StrictModels = true }})
	for _, c := range []struct {
		name, body string
		status     int
		code       string
		param      any
	}{
		{"invalid_json", "{", 400, "invalid_json", nil},
		{"RS-07 plain text", "hello there", 400, "invalid_json", nil},
		{"RS-06 missing_model", `{"prompt":"x"}`, 400, "missing_model", model},
		{"model_not_found", `{"model":"zz","prompt":"x"}`, 404, "model_not_found", model},
	} {
		t.Run("EU-10/"+c.name, func(t *testing.T) {
			im := r.ask(reqHeaders(fullDuplex, false, completionsPath), reqBody([]byte(c.body), true))[0].GetImmediateResponse()
			if int(im.GetStatus().GetCode()) != c.status || im.GetDetails() != "eppctl_"+c.code {
				t.Fatalf("%v", im)
			}
			checkError(t, im, "invalid_request_error", c.code, c.param)
			if strings.Contains(string(im.GetBody()), "hello") {
				t.Fatal("the error quotes the prompt")
			}
		})
	}
}

// The header has whole seconds, and never fewer than it takes.
func TestRetryAfterInSeconds(t *testing.T) {
	for wait, want := range map[time.Duration]string{time.Second: "1", 4500 * time.Millisecond: "5", 30 * time.Second: "30"} {
		if got := immediateHeader(saturated(wait).response("").GetImmediateResponse(), "retry-after"); got != want {
			t.Errorf("%v: %q, want %s", wait, got, want)
		}
	}
}

func TestSaturated(t *testing.T) {
	r, depth := newRig(t, rigOptions{}), float64(pick.DefaultPolicy().Breaker.Depth)
	for _, p := range r.fleet.Pods.Snapshot().Pods {
		r.scrape(p, 10, depth+8)
	}
	r.scrape(r.pod("b"), 10, depth+3)
	body := completion("m", ids(1, 64))
	t.Run("EP-22a", func(t *testing.T) {
		im := r.ask(reqHeaders(fullDuplex, false, completionsPath, "x-gateway-inference-objective", "-1"), reqBody(body, true))[0].GetImmediateResponse()
		if im.GetStatus().GetCode() != 429 || immediateHeader(im, "retry-after") == "" || immediateHeader(im, dropReason) != "rejected-saturated" {
			t.Fatalf("%v", im)
		}
	})
	t.Run("EP-22b RS-04", func(t *testing.T) {
		if d := r.route(body); d != r.pod("b").Target {
			t.Fatalf("%s, want the least saturated", d)
		}
	})
}
