package serve

import (
	"bytes"
	_ "embed"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// Variant is how Envoy learns which pod was picked.
type Variant string

// The variants of the printed bootstrap.
const (
	// OverrideHost keeps a host list, from a file that serve maintains: it can
	// retry on another host, walk fallback lists and fail open.
	OverrideHost Variant = "override-host"
	// OriginalDst keeps no host list and takes the address from dynamic metadata.
	OriginalDst Variant = "original-dst"
	// OriginalDstHeader takes it from a request header, as gateways often do.
	OriginalDstHeader Variant = "original-dst-header"
)

// Variants lists them, the default first.
func Variants() []Variant { return []Variant{OverrideHost, OriginalDst, OriginalDstHeader} }

// Body is how Envoy hands request bodies to the picker.
type Body string

// The body modes of the printed bootstrap.
const (
	Buffered   Body = "buffered"    // Envoy keeps the body: fails open, can answer 413
	FullDuplex Body = "full-duplex" // the body passes through the picker
)

// Bodies lists them, the default first.
func Bodies() []Body { return []Body{Buffered, FullDuplex} }

// ResponseBody is whether responses are shown to the picker.
type ResponseBody string

// The response body modes of the printed bootstrap.
const (
	ResponseUnseen   ResponseBody = "none"
	ResponseStreamed ResponseBody = "streamed"    // usage is read
	ResponseDuplex   ResponseBody = "full-duplex" // and the client's model name put back
)

// ResponseBodies lists them, the default first.
func ResponseBodies() []ResponseBody {
	return []ResponseBody{ResponseUnseen, ResponseStreamed, ResponseDuplex}
}

// Mode is what Envoy calls it.
func (b ResponseBody) Mode() string {
	switch b {
	case ResponseStreamed:
		return "STREAMED"
	case ResponseDuplex:
		return "FULL_DUPLEX_STREAMED"
	}
	return "NONE"
}

// BootstrapOptions are what differs between two Envoys. DefaultBootstrap gives
// values that fit serve's own defaults on one machine.
type BootstrapOptions struct {
	Variant Variant
	Body    Body
	// ResponseBody other than ResponseUnseen costs the picker every byte of every answer.
	ResponseBody ResponseBody
	Listen       string // host:port for clients
	Admin        string // host:port of Envoy's admin page, "" = none
	EPP          string // host:port of serve's ext_proc listener: an IP or a DNS name
	// EPPHealth is the port that answers gRPC health checks, 0 = that of EPP.
	EPPHealth int
	// EndpointsFile is serve's envoy.endpoints_file; only OverrideHost reads it.
	EndpointsFile string
	Cluster       string // name of the pool's cluster, in that file too
	// Fallbacks is serve's --fallbacks: further hosts that a retry may name.
	Fallbacks int
	// EngineHealth is the path Envoy probes on each pod, "" = none; only
	// OverrideHost has a host list to probe. A picked pod is used whatever its
	// health; the probes steer the picks Envoy makes itself when it fails open.
	EngineHealth string
	// Baseline is a second listener, host:port, that routes without the picker:
	// round robin over the same hosts, to compare with. "" = none.
	Baseline string
	// AccessLog is the file of Envoy's access log with the pick in each line, such
	// as /dev/stdout; "" = none.
	AccessLog string
	// RequestBytes is the largest body Envoy keeps; serve's limits.request_bytes.
	RequestBytes int
}

// DefaultBootstrap returns the default variant on the default ports.
func DefaultBootstrap() BootstrapOptions {
	return BootstrapOptions{
		Variant: OverrideHost, Body: Buffered, ResponseBody: ResponseUnseen,
		Listen: "0.0.0.0:10080", Admin: "127.0.0.1:19000", EPP: "127.0.0.1:9002",
		EndpointsFile: "/var/lib/eppctl/endpoints.json", Cluster: "pool",
		EngineHealth: "/health", RequestBytes: 32 << 20,
	}
}

//go:embed bootstrap.yaml.tmpl
var bootstrapText string

var bootstrapTemplate = template.Must(template.New("bootstrap").Funcs(template.FuncMap{
	"socket": socketAddress,
}).Parse(bootstrapText))

// Bootstrap returns an Envoy bootstrap in YAML, with comments that say why.
func Bootstrap(o BootstrapOptions) ([]byte, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("envoy bootstrap: %w", err)
	}
	var b bytes.Buffer
	if err := bootstrapTemplate.Execute(&b, o); err != nil {
		return nil, fmt.Errorf("envoy bootstrap: %w", err)
	}
	return b.Bytes(), nil
}

func (o BootstrapOptions) check() error {
	switch {
	case !slices.Contains(Variants(), o.Variant):
		return fmt.Errorf("variant: found %q; expected one of %v", o.Variant, Variants())
	case !slices.Contains(Bodies(), o.Body):
		return fmt.Errorf("body mode: found %q; expected one of %v", o.Body, Bodies())
	case !slices.Contains(ResponseBodies(), o.ResponseBody):
		return fmt.Errorf("response body mode: found %q; expected one of %v", o.ResponseBody, ResponseBodies())
	case o.Variant == OverrideHost && o.EndpointsFile == "":
		return fmt.Errorf("variant %s needs the endpoints file that serve keeps", o.Variant)
	case o.Variant != OverrideHost && o.Baseline != "":
		return fmt.Errorf("variant %s has no host list for a baseline listener", o.Variant)
	case o.Variant != OverrideHost && o.Fallbacks > 0:
		return fmt.Errorf("variant %s takes one address: fallbacks need %s", o.Variant, OverrideHost)
	case o.Fallbacks < 0 || o.Fallbacks > MaxFallbacks:
		return fmt.Errorf("fallbacks: found %d; expected 0 to %d", o.Fallbacks, MaxFallbacks)
	case o.EPPHealth < 0 || o.EPPHealth > 65535:
		return fmt.Errorf("health port: found %d; expected 0 to 65535", o.EPPHealth)
	case o.RequestBytes <= 0 || o.RequestBytes > 1<<30:
		return fmt.Errorf("request bytes: found %d; expected 1 to 1073741824", o.RequestBytes)
	}
	for _, s := range []string{o.Cluster, o.EndpointsFile, o.EngineHealth, o.AccessLog} {
		if i := strings.IndexFunc(s, unquotable); i >= 0 {
			return fmt.Errorf("found %q with character %q; expected text that can stand in a bootstrap", s, s[i])
		}
	}
	for _, a := range []string{o.Listen, o.Admin, o.EPP, o.Baseline} {
		if _, err := socketAddress(a); a != "" && err != nil {
			return err
		}
	}
	if o.Listen == "" || o.EPP == "" || o.Cluster == "" {
		return fmt.Errorf("found nothing; expected a listen address, the picker's address and a cluster name")
	}
	return nil
}

// unquotable characters would end the double-quoted string they stand in.
func unquotable(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f }

// socketAddress writes host:port as an Envoy socket address in flow style.
func socketAddress(hostport string) (string, error) {
	host, port, err := splitHostPort(hostport)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`{socket_address: {address: "%s", port_value: %d}}`, host, port), nil
}

// EPPType is the discovery type of the picker's cluster.
func (o BootstrapOptions) EPPType() string {
	host, _, _ := splitHostPort(o.EPP)
	if _, err := netip.ParseAddr(host); err != nil {
		return "STRICT_DNS"
	}
	return "STATIC"
}

// Retries is Envoy's number of further attempts: one per fallback and one by the
// fallback policy, at least two, so that two pods may die at once.
func (o BootstrapOptions) Retries() int { return max(o.Fallbacks+1, 2) }

// HasHosts tells the template that Envoy knows the pool's hosts.
func (o BootstrapOptions) HasHosts() bool { return o.Variant == OverrideHost }

// Duplex tells the template that bodies pass through the picker.
func (o BootstrapOptions) Duplex() bool { return o.Body == FullDuplex }

// Returned tells the template that answers pass through the picker.
func (o BootstrapOptions) Returned() bool { return o.ResponseBody == ResponseDuplex }

func splitHostPort(s string) (host string, port uint16, err error) {
	host, p, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, fmt.Errorf("address: found %q; expected HOST:PORT", s)
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("address: found %q with port %q; expected 1 to 65535", s, p)
	}
	if host == "" || strings.IndexFunc(host, unquotable) >= 0 {
		return "", 0, fmt.Errorf("address: found %q; expected an IP address or a DNS name before the port", s)
	}
	return host, uint16(n), nil
}
