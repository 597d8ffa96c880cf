package feed

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// claim is one pod's expectation that its publishers dial us.
type claim struct {
	addr  atomic.Pointer[netip.AddrPort] // of the pod; nil while its name is not resolved
	names []string                       // what its topic may call it, besides the address
	ranks []*inbox                       // one per rank
}

func newClaim(s pod.Spec, a netip.AddrPort, ranks int) *claim {
	c := &claim{names: []string{s.Name, s.Address}, ranks: make([]*inbox, ranks)}
	for i := range c.ranks {
		c.ranks[i] = newInbox()
	}
	c.at(a)
	return c
}

// at tells the pod's resolved address.
func (c *claim) at(a netip.AddrPort) {
	if a.IsValid() {
		c.addr.Store(&a)
	}
}

// from reports whether the pod has this address.
func (c *claim) from(ip netip.Addr) bool {
	a := c.addr.Load()
	return a != nil && a.Addr().Unmap() == ip
}

// called reports whether a topic's pod id means this pod.
func (c *claim) called(id string) bool {
	a := c.addr.Load()
	return slices.Contains(c.names, id) || a != nil && (a.String() == id || a.Addr().String() == id)
}

// owner finds the member a connection belongs to; why is empty when the
// connection ended by itself.
func (g *gate) owner(from netip.Addr, src *accepted) (box *inbox, why string, err error) {
	here := g.claimants(from)
	if len(here) == 1 && len(here[0].ranks) == 1 {
		return here[0].ranks[0], "", nil
	}
	var topic string
	var payload []byte
	for {
		frames, err := src.link.Recv()
		if err != nil {
			return nil, "", nil
		}
		// Commands and other shapes tell nothing; the subscriber counts them.
		if topic, _, payload, err = event.ParseFrames(frames); err == nil {
			src.first = frames
			break
		}
	}
	c := here
	if len(c) != 1 {
		c = named(g.claimants(netip.Addr{}), here, topic)
	}
	if len(c) != 1 {
		return nil, refusedUnknown, fmt.Errorf("%d pods have this address, %d fit its topic", len(here), len(c))
	}
	rank, err := rankIn(payload, len(c[0].ranks))
	if err != nil {
		return nil, refusedRank, err
	}
	return c[0].ranks[rank], "", nil
}

// rankIn is the rank that a batch tells, of as many as the pod has.
func rankIn(payload []byte, ranks int) (int, error) {
	if ranks <= 1 {
		return 0, nil
	}
	var d event.Decoder
	var b event.Batch
	if err := d.Decode(payload, &b); err != nil || b.Rank < 0 || b.Rank >= ranks {
		return 0, fmt.Errorf("batch of rank %d, %d are configured", b.Rank, ranks)
	}
	return b.Rank, nil
}

// claimants returns the claims of an address, all for the zero one.
func (g *gate) claimants(from netip.Addr) (out []*claim) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.claims {
		if !from.IsValid() || c.from(from) {
			out = append(out, c)
		}
	}
	return out
}

// named returns the claims a topic kv@<pod>@<model> names, among those here if
// there are any. Pods are written ip:port, ip or by name; models may hold an @.
func named(all, here []*claim, topic string) (out []*claim) {
	parts := strings.SplitN(topic, "@", 3)
	if len(parts) < 3 || parts[0] != "kv" {
		return nil
	}
	if len(here) > 0 {
		all = here
	}
	for _, c := range all {
		if c.called(parts[1]) {
			out = append(out, c)
		}
	}
	return out
}
