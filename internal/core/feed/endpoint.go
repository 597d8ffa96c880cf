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
	host, port, err := pod.SplitEndpoint(endpoint)
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

// shifted adds a rank to the port, as the engines do for data-parallel ranks.
func shifted(endpoint string, rank int) string {
	host, port, err := pod.SplitEndpoint(endpoint)
	if err != nil {
		return endpoint
	}
	return tcpEndpoint(host, port, rank)
}

// Endpoint reads the endpoint of a publisher that is to be dialled and returns it as
// tcp://host:port.
func Endpoint(text string) (string, error) {
	host, port, err := pod.SplitEndpoint(text)
	if err != nil {
		return "", err
	}
	if ip, err := netip.ParseAddr(host); host == "" || host == "*" || err == nil && ip.IsUnspecified() {
		return "", fmt.Errorf("endpoint %q names no host to dial: every address of a machine can only be listened at", text)
	}
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// ListenEndpoint reads an endpoint of this machine to listen at: tcp://*:port,
// :port, host:port. Port 0 lets the system choose.
func ListenEndpoint(text string) (string, error) {
	some, chosen := strings.CutSuffix(text, ":0")
	if chosen {
		some += ":1"
	} else {
		some = text
	}
	host, port, err := pod.SplitEndpoint(some)
	if err != nil {
		return "", err
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && host != "*" && host != "localhost" {
		return "", fmt.Errorf("endpoint %q: %q is not an address of this machine; * is all of them", text, host)
	}
	if host == "" {
		host = "*"
	}
	if chosen {
		port = 0
	}
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// listenAddress is what net.Listen calls an endpoint of ListenEndpoint.
func listenAddress(endpoint string) (string, error) {
	at, err := ListenEndpoint(endpoint)
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(strings.TrimPrefix(at, "tcp://"), "*"), nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// samePort compares endpoints by port: the same host has many names.
func samePort(a, b string) bool {
	_, p, err1 := pod.SplitEndpoint(a)
	_, q, err2 := pod.SplitEndpoint(b)
	return err1 == nil && err2 == nil && p == q
}
