package feed

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// publisherBinds says whether an engine listens at its event endpoint; else it
// connects there and eppctl has to listen. vLLM goes by the text: an asterisk
// or a double colon binds, any other host connects, 0.0.0.0 included. SGLang
// binds for that one too.
func publisherBinds(endpoint string, e pod.Engine) bool {
	return strings.Contains(endpoint, "*") || strings.Contains(endpoint, "::") ||
		!strings.HasPrefix(endpoint, "tcp://") ||
		e == pod.EngineSGLang && strings.Contains(endpoint, "0.0.0.0")
}

var errLoopback = errors.New("listens on its own loopback only")

// dialTo turns an endpoint at which the engine listens into the one to dial.
func dialTo(endpoint, podHost string) (string, error) {
	host, port, err := splitEndpoint(endpoint)
	if err != nil {
		return "", err
	}
	switch {
	case host == "*" || host == "0.0.0.0" || host == "::":
		host = podHost
	case loopback(host) && !loopback(podHost):
		return "", fmt.Errorf("endpoint %q: %w", endpoint, errLoopback)
	}
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// splitEndpoint takes tcp://host:port apart. Unlike net.SplitHostPort it takes
// the unbracketed :: that engines accept.
func splitEndpoint(endpoint string) (host string, port int, err error) {
	rest, ok := strings.CutPrefix(endpoint, "tcp://")
	if !ok {
		return "", 0, fmt.Errorf("endpoint %q: only tcp:// can be reached from here", endpoint)
	}
	i := strings.LastIndexByte(rest, ':')
	if i < 0 {
		return "", 0, fmt.Errorf("endpoint %q has no port", endpoint)
	}
	port, err = strconv.Atoi(rest[i+1:])
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("endpoint %q: port %q is not 1 to 65535", endpoint, rest[i+1:])
	}
	return strings.Trim(rest[:i], "[]"), port, nil
}

// shifted adds a rank to the port, as the engines do for data-parallel ranks.
func shifted(endpoint string, rank int) string {
	host, port, err := splitEndpoint(endpoint)
	if err != nil {
		return endpoint
	}
	return tcpEndpoint(host, port, rank)
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// samePort compares endpoints by port: the same host has many names.
func samePort(a, b string) bool {
	_, p, err1 := splitEndpoint(a)
	_, q, err2 := splitEndpoint(b)
	return err1 == nil && err2 == nil && p == q
}
