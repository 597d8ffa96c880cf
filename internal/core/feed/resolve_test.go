package feed

import (
	"context"
	"errors"
	"net/netip"
	"testing"
)

type names map[string][]netip.Addr

func (n names) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	if network != "ip" {
		return nil, errors.New("network " + network)
	}
	ips, ok := n[host]
	if !ok {
		return nil, errors.New("no such host")
	}
	return ips, nil
}

func TestResolve(t *testing.T) {
	ip := netip.MustParseAddr
	r := names{
		"one":   {ip("10.0.0.7")},
		"many":  {ip("fd00::1"), ip("10.0.0.9"), ip("::ffff:10.0.0.8")},
		"v6":    {ip("fd00::2"), ip("fd00::1")},
		"empty": {},
	}
	for _, c := range []struct{ address, current, want string }{
		{"10.0.0.7:8000", "", "10.0.0.7:8000"},
		{"[fd00::1]:8000", "", "[fd00::1]:8000"},
		{"[::ffff:10.0.0.7]:8000", "", "10.0.0.7:8000"},
		{"one:8000", "", "10.0.0.7:8000"},
		{"many:8000", "", "10.0.0.8:8000"},
		{"many:8000", "10.0.0.9:8000", "10.0.0.9:8000"},
		{"many:8000", "10.0.0.1:8000", "10.0.0.8:8000"}, // the old one left the answer
		{"v6:8000", "", "[fd00::1]:8000"},
		{"empty:8000", "", ""}, {"nobody:8000", "", ""}, {"one", "", ""}, {"one:0", "", ""}, {"one:65536", "", ""}, {"one:http", "", ""}, {"fd00::1:8000", "", ""},
	} {
		var current netip.AddrPort
		if c.current != "" {
			current = netip.MustParseAddrPort(c.current)
		}
		got, err := Resolve(t.Context(), r, c.address, current)
		if (err == nil) != (c.want != "") || (err == nil && got.String() != c.want) {
			t.Errorf("%s (now %q): %v, %v, want %q", c.address, c.current, got, err, c.want)
		}
	}
	if got, err := Resolve(t.Context(), nil, "10.0.0.7:8000", netip.AddrPort{}); err != nil || got.String() != "10.0.0.7:8000" {
		t.Errorf("a literal address needs no resolver: %v, %v", got, err)
	}
}
