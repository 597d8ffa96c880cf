package serve

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// upstreamTime is a header that Envoy's router adds to what an endpoint answered
// and not to answers of its own, such as the 503 for a refused connection (Envoy
// 1.40.0 measured; -served stands on those too, as the last host tried).
const upstreamTime = "x-envoy-upstream-service-time"

// reply is what response headers tell.
type reply struct {
	code     int            // 0 = none that can be read
	sse      bool           // an event stream, whose headers precede its first byte
	whole    bool           // its length is told, so that it was complete before its headers
	unseen   bool           // no byte of the body will be shown to us
	encoded  bool           // compressed: the body is not read
	timed    bool           // Envoy says how long the engine took: it did answer
	servedBy netip.AddrPort // as the proxy reports it; not valid = it does not
}

func readReply(h *extproc.HttpHeaders, md *corev3.Metadata) (r reply) {
	contentType := ""
	for _, kv := range h.GetHeaders().GetHeaders() {
		switch key := kv.GetKey(); {
		case key == ":status":
			r.code, _ = strconv.Atoi(headerValue(kv))
		case strings.EqualFold(key, "content-type"):
			contentType = headerValue(kv)
		case strings.EqualFold(key, "content-encoding"):
			r.encoded = coding(headerValue(kv)) != ""
		case strings.EqualFold(key, lengthHeader):
			r.whole = headerValue(kv) != ""
		case strings.EqualFold(key, upstreamTime):
			r.timed = true
		}
	}
	r.sse = strings.HasPrefix(contentType, "text/event-stream") && r.code == http.StatusOK
	r.servedBy = servedBy(md)
	return r
}

// servedBy reads which endpoint the proxy used.
func servedBy(md *corev3.Metadata) netip.AddrPort {
	a, err := netip.ParseAddrPort(md.GetFilterMetadata()[lbNamespace].GetFields()[servedKey].GetStringValue())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
