package serve

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// hostsFile keeps the file from which Envoy takes the pool's hosts (EDS from a
// path) as the fleet is. Envoy watches for renames: the file is written
// beside itself and moved over, so that it is never read half. One goroutine at
// a time may call update.
type hostsFile struct {
	path    string
	cluster string
	last    *endpointv3.ClusterLoadAssignment // as written
	version int
}

// update writes the file if the fleet's addresses differ from what it wrote, or if
// the file is gone: Envoy's next start needs it. What another writer puts there
// stays, as two pickers with one file would write by turns. A
// fleet without an address (DNS names at start, or no pods at all) writes nothing:
// an empty list makes Envoy answer 503 where a missing file only makes it wait, and
// the hosts of before may still serve what the picker cannot place.
func (h *hostsFile) update(set *pod.Set) error {
	if h.path == "" {
		return nil
	}
	cla := h.assignment(set)
	if len(cla.Endpoints[0].LbEndpoints) == 0 {
		return nil
	}
	if _, err := os.Stat(h.path); proto.Equal(cla, h.last) && !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	res, err := anypb.New(cla)
	if err != nil {
		return fmt.Errorf("hosts file %s: %w", h.path, err)
	}
	h.version++
	out, err := protojson.Marshal(&discoveryv3.DiscoveryResponse{
		VersionInfo: strconv.Itoa(h.version), TypeUrl: res.TypeUrl, Resources: []*anypb.Any{res},
	})
	if err != nil {
		return fmt.Errorf("hosts file %s: %w", h.path, err)
	}
	if err := replaceFile(h.path, append(out, '\n')); err != nil {
		return fmt.Errorf("hosts file %s: %w", h.path, err)
	}
	h.last = cla
	return nil
}

// assignment lists each address once, in order of pod ID. Draining pods stay, as
// what they run goes on; Envoy places nothing new there of its own accord either.
func (h *hostsFile) assignment(set *pod.Set) *endpointv3.ClusterLoadAssignment {
	group := &endpointv3.LocalityLbEndpoints{}
	seen := map[netip.AddrPort]bool{}
	for _, p := range set.Pods {
		if !p.Addr.IsValid() || seen[p.Addr] {
			continue
		}
		seen[p.Addr] = true
		group.LbEndpoints = append(group.LbEndpoints, lbEndpoint(p))
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: h.cluster, Endpoints: []*endpointv3.LocalityLbEndpoints{group}}
}

func lbEndpoint(p *pod.Pod) *endpointv3.LbEndpoint {
	socket := &corev3.SocketAddress{
		Address:       p.Addr.Addr().String(),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(p.Addr.Port())},
	}
	e := &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: socket}},
	}}}
	if p.Spec.Draining {
		e.HealthStatus = corev3.HealthStatus_DRAINING
	}
	return e
}

// replaceFile writes content beside path and renames it over: readers see the
// old file or the new one.
func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return withoutName(err)
	}
	defer os.Remove(f.Name()) // fails once renamed
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(0o644) // Envoy may run as another user
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return withoutName(err)
}

// withoutName takes the temporary name out of an error: it means nothing to the
// reader, and is another one in every attempt.
func withoutName(err error) error {
	var pe *os.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return fmt.Errorf("%s: %w", pe.Op, pe.Err)
	case errors.As(err, &le):
		return fmt.Errorf("%s: %w", le.Op, le.Err)
	}
	return err
}
