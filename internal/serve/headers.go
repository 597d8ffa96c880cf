package serve

import (
	"net/http"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/eppctl/eppctl/internal/core/prompt"
)

// Names of the endpoint-picker protocol (gateway-api-inference-extension,
// proposal 004). The same string goes into the header and the metadata.
const (
	destinationKey  = "x-gateway-destination-endpoint"
	servedKey       = destinationKey + "-served"
	scoresKey       = destinationKey + "-scores"
	subsetKey       = destinationKey + "-subset"
	lbNamespace     = "envoy.lb"
	subsetNamespace = "envoy.lb.subset_hint"

	requestIDHeader = "x-request-id"
	lengthHeader    = "content-length"
	bodyCompressed  = "x-body-compressed" // SGLang 0.5.23 reads it where SGLANG_ENABLE_REQUEST_DECOMPRESSION is set
	rewriteSuffix   = "model-name-rewrite"
	dropReason      = "x-llm-d-request-dropped-reason"
	rankHeader      = "x-data-parallel-rank" // vLLM and SGLang: route to this rank
)

// maxRequestID bounds a client's request id: it is kept in the ring, written to
// logs and hashed in the tie-break. A longer one is replaced by our own.
const maxRequestID = 256

// head is what the picker reads from a request's headers.
type head struct {
	Method, Path          string
	ContentType, Encoding string
	Codings               []string // headers that say Encoding
	RequestID             string   // "" = the client sent none we can use
	Length                int64    // content-length, -1 = not said
	Objective             string
	Fairness              string
	Rewrite               string // model the gateway wants served instead
	Overlong              bool   // it named one that is too long to be a name
	IfAvailable           bool   // Prefer: if-available
	// Strip lists the control headers present, to be removed before the engine
	// sees them.
	Strip []string
}

// parseHead reads a header map. Envoy sends keys in lower case; other callers of
// the protocol need not.
func parseHead(m *corev3.HeaderMap) head {
	h := head{Length: -1}
	var c controls
	for _, kv := range m.GetHeaders() {
		h.read(kv.GetKey(), headerValue(kv), &c)
	}
	return h.with(&c)
}

// headOf reads the headers of a request that came over HTTP.
func headOf(from http.Header, method, path string) head {
	h := head{Length: -1, Method: method, Path: path}
	var c controls
	for key, values := range from {
		for _, v := range values {
			h.read(key, v, &c)
		}
	}
	return h.with(&c)
}

func (h *head) read(key, val string, c *controls) {
	if hasUpper(key) {
		key = strings.ToLower(key)
	}
	switch key {
	case ":method":
		h.Method = val
	case ":path":
		h.Path = val
	case "content-type":
		h.ContentType = val
	case "content-encoding", bodyCompressed:
		if coding(h.Encoding) != "" {
			val = h.Encoding + ", " + val // two codings, one over the other
		}
		h.Encoding, h.Codings = val, append(h.Codings, key)
	case lengthHeader:
		if n, err := strconv.ParseInt(val, 10, 64); err == nil && n >= 0 {
			h.Length = n
		}
	case requestIDHeader:
		if h.RequestID == "" && usableID(val) {
			h.RequestID = val
		}
	case "prefer":
		h.IfAvailable = h.IfAvailable || prefersAvailable(val)
	default:
		if isControl(key) {
			c.note(key, val)
			h.Strip = append(h.Strip, key)
		}
	}
}

func (h head) with(c *controls) head {
	h.Objective = c.get("inference-objective")
	h.Fairness = c.get("inference-fairness-id")
	h.Rewrite = c.get(rewriteSuffix)
	if len(h.Rewrite) > prompt.MaxName {
		h.Rewrite, h.Overlong = "", true
	}
	return h
}

// usableID keeps out what has no place in a log line or a metric label.
func usableID(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return len(id) <= maxRequestID
}

// controls collects the values of the control headers that exist under an old
// (x-gateway-) and a new (x-llm-d-) name. The new name wins, whatever the order;
// within a name the first value.
type controls struct{ names, values []string }

func (c *controls) note(key, val string) {
	c.names, c.values = append(c.names, key), append(c.values, val)
}

func (c *controls) get(suffix string) string {
	for _, prefix := range [...]string{"x-llm-d-", "x-gateway-"} {
		for i, n := range c.names {
			if strings.HasPrefix(n, prefix) && n[len(prefix):] == suffix {
				return c.values[i]
			}
		}
	}
	return ""
}

// isControl reports whether a header steers pickers or sidecars and so must not
// come through from a client. The destination header itself is not one of them:
// it is overwritten.
func isControl(key string) bool {
	if !strings.HasPrefix(key, "x-") {
		return false
	}
	switch key {
	case destinationKey:
		return false
	case "x-llm-d-inference-objective", "x-gateway-inference-objective",
		"x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id",
		"x-llm-d-model-name-rewrite", "x-gateway-model-name-rewrite",
		"x-slo-ttft-ms", "x-slo-tpot-ms",
		"x-prefiller-host-port", "x-encoder-hosts-ports",
		"x-data-parallel-host-port", "x-kv-cache-source-host-port":
		return true
	}
	return strings.HasPrefix(key, destinationKey+"-") || strings.HasPrefix(key, "x-llm-d-slo-")
}

// headerValue reads either form; Envoy sends raw_value.
func headerValue(kv *corev3.HeaderValue) string {
	if raw := kv.GetRawValue(); len(raw) > 0 {
		return string(raw)
	}
	return kv.GetValue()
}

// prefersAvailable looks for the token if-available in a Prefer header (RFC 7240:
// a comma list; parameters behind a semicolon).
func prefersAvailable(v string) bool {
	for item := range strings.SplitSeq(v, ",") {
		token, _, _ := strings.Cut(item, ";")
		if strings.EqualFold(strings.TrimSpace(token), "if-available") {
			return true
		}
	}
	return false
}

func hasUpper(s string) bool {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return true
		}
	}
	return false
}
