package serve

import (
	"net/netip"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// maxSubset bounds the entries of a hint: more than a fleet can have twice over
// name nothing new.
const maxSubset = 2 * pod.MaxMembers

// subsetOf reads the gateway's endpoint hint. Without the key the whole pool may
// serve (nil). A hint that is there but names nobody, or is of a kind that
// cannot name anybody, admits nobody: failing open would send a request outside
// the pods the gateway allows.
func subsetOf(md *corev3.Metadata) *pick.Subset {
	v, ok := md.GetFilterMetadata()[subsetNamespace].GetFields()[subsetKey]
	if !ok {
		return nil
	}
	s := &pick.Subset{}
	switch k := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		addEntries(s, k.StringValue)
	case *structpb.Value_ListValue:
		for _, e := range k.ListValue.GetValues() {
			addEntries(s, e.GetStringValue())
		}
	}
	return s
}

// addEntries adds one entry or a comma list of them: "ip:port" names an
// endpoint, "ip" every port of that address, IPv6 with or without brackets.
func addEntries(s *pick.Subset, list string) {
	for e := range strings.SplitSeq(list, ",") {
		if len(s.Addrs)+len(s.IPs) >= maxSubset {
			return
		}
		e = strings.TrimSpace(e)
		if a, err := netip.ParseAddrPort(e); err == nil {
			s.Addrs = append(s.Addrs, netip.AddrPortFrom(a.Addr().Unmap(), a.Port()))
			continue
		}
		if strings.HasPrefix(e, "[") && strings.HasSuffix(e, "]") {
			e = e[1 : len(e)-1]
		}
		if ip, err := netip.ParseAddr(e); err == nil {
			s.IPs = append(s.IPs, ip.Unmap())
		}
	}
}
