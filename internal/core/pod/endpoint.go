package pod

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// SplitEndpoint takes an endpoint of events apart, as engines, the configuration
// and the command line write them: tcp://HOST:PORT, HOST:PORT, *:PORT, :PORT, or a
// port alone. The host is "" where none is written and "*" where that is; an IPv6
// address comes without its brackets, which engines leave out too.
func SplitEndpoint(text string) (host string, port int, err error) {
	rest, isTCP := strings.CutPrefix(text, "tcp://")
	if !isTCP && strings.Contains(text, "://") {
		return "", 0, fmt.Errorf("endpoint %q: only tcp:// can be reached from here", text)
	}
	i := strings.LastIndexByte(rest, ':')
	if i < 0 && (isTCP || strings.ContainsFunc(rest, func(r rune) bool { return r < '0' || r > '9' })) {
		return "", 0, fmt.Errorf("endpoint %q has no port", text)
	}
	number := rest[i+1:]
	port, err = strconv.Atoi(number)
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("endpoint %q: port %q is not 1 to 65535", text, number)
	}
	host = rest[:max(i, 0)]
	if inside, open := strings.CutPrefix(host, "["); open {
		host, open = strings.CutSuffix(inside, "]")
		if a, err := netip.ParseAddr(host); !open || err != nil || !a.Is6() {
			return "", 0, fmt.Errorf("endpoint %q: no IPv6 address stands in the brackets", text)
		}
		return host, port, nil
	}
	if strings.Contains(host, ":") {
		if _, err := netip.ParseAddr(host); err != nil {
			return "", 0, fmt.Errorf("endpoint %q: %q is no host", text, host)
		}
	}
	if strings.ContainsAny(host, " \t[]/,") {
		return "", 0, fmt.Errorf("endpoint %q: %q is no host", text, host)
	}
	return host, port, nil
}
