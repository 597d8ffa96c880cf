package serve

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

func parsePort(s string) (int, error) {
	p, err := strconv.Atoi(s)
	if err != nil || p < 1 || p > 65535 {
		return 0, fmt.Errorf("found port %q, which is not 1 to 65535", clip(s))
	}
	return p, nil
}

// checkAddress accepts what a pod's address may be.
func checkAddress(s string) error {
	if s == "" {
		return errMissing
	}
	host, p, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("found %q", clip(s))
	}
	if _, err := parsePort(p); err != nil {
		return err
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" || a.IsUnspecified() {
			return fmt.Errorf("found %q, which is not the address of a pod", clip(host))
		}
		return nil
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(host) > 253 || slices.ContainsFunc(labels, badLabel) || allDigits(labels[len(labels)-1]) {
		return fmt.Errorf("found %q, which is neither an IP address nor a DNS name", clip(host))
	}
	return nil
}

func badLabel(s string) bool {
	return s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' || strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

func allDigits(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// addressHint recognises the usual slips.
func addressHint(s string) string {
	if rest, ok := strings.CutPrefix(s, "http://"); ok {
		return fmt.Sprintf("without the scheme: %q", clip(strings.TrimSuffix(rest, "/")))
	}
	if _, err := parsePort(s); err == nil {
		return "a port alone names no host: 127.0.0.1:" + s
	}
	if i := strings.LastIndexByte(s, ':'); i > 0 && strings.Count(s, ":") > 1 && s[0] != '[' {
		return fmt.Sprintf("an IPv6 address stands in brackets: %q", "["+s[:i]+"]"+s[i:])
	}
	if s != "" && !strings.Contains(s, ":") {
		return "the port is missing"
	}
	return ""
}
