package feed

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// Resolver looks names up; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Resolve turns a configured address (IPv4, [IPv6] or DNS name, with port) into
// the one that is dialled and named to Envoy. Only names need the resolver. A
// name with several addresses keeps current while that is among them, and else
// gets the lowest, IPv4 first, so that every replica of eppctl picks the same.
func Resolve(ctx context.Context, r Resolver, address string, current netip.AddrPort) (netip.AddrPort, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("address %q: %w", address, err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || port == 0 {
		return netip.AddrPort{}, fmt.Errorf("address %q: port %q is not 1 to 65535", address, portText)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(ip.Unmap(), uint16(port)), nil
	}
	ips, err := r.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("address %q: %w", address, err)
	}
	if len(ips) == 0 {
		return netip.AddrPort{}, fmt.Errorf("address %q: name has no address", address)
	}
	all := make([]netip.Addr, len(ips))
	for i, ip := range ips {
		all[i] = ip.Unmap()
	}
	ip := slices.MinFunc(all, netip.Addr.Compare) // compares the length first
	if current.IsValid() && slices.Contains(all, current.Addr().Unmap()) {
		ip = current.Addr().Unmap()
	}
	return netip.AddrPortFrom(ip, uint16(port)), nil
}

func isName(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = netip.ParseAddr(host)
	return err != nil
}

// resolve looks the pod's name up for as long as ctx lives.
func (k *keeper) resolve(ctx context.Context, resolved chan<- netip.AddrPort, address string, current netip.AddrPort) {
	var wait backoff
	for {
		try, cancel := context.WithTimeout(ctx, discoverTimeout)
		a, err := Resolve(try, k.feed.opts.Resolver, address, current)
		cancel()
		pause := k.feed.opts.ResolveEvery
		switch {
		case err != nil:
			k.log.Debug("address not resolved", "err", err)
			pause = wait.next()
		default:
			current = a
			wait.reset()
			select {
			case resolved <- a:
			case <-ctx.Done():
			}
		}
		if sleep(ctx, pause) != nil {
			return
		}
	}
}
