package serve

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	overridev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/override_host/v3"
	upstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/eppctl/eppctl/internal/testdata"
)

func eachBootstrap(t *testing.T, f func(*testing.T, BootstrapOptions)) {
	for _, v := range Variants() {
		for _, b := range Bodies() {
			o := DefaultBootstrap()
			o.Variant, o.Body, o.EPPHealth = v, b, 9003
			t.Run(fmt.Sprintf("%s/%s", v, b), func(t *testing.T) { f(t, o) })
		}
	}
}

// The six outputs, to the byte: what operators copy does not change unseen.
func TestGoldenBootstraps(t *testing.T) {
	eachBootstrap(t, func(t *testing.T, o BootstrapOptions) {
		got, err := Bootstrap(o)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "bootstraps", fmt.Sprintf("%s-%s.yaml", o.Variant, o.Body))
		testdata.Golden(t, path, got)
	})
}

// unpack reads an Any as the type it must hold.
func unpack[T proto.Message](t *testing.T, a *anypb.Any, into T) T {
	t.Helper()
	if err := a.UnmarshalTo(into); err != nil {
		t.Fatal(err)
	}
	return into
}

func managerOf(t *testing.T, b *bootstrapv3.Bootstrap, listener int) *hcmv3.HttpConnectionManager {
	t.Helper()
	f := b.StaticResources.Listeners[listener].FilterChains[0].Filters[0]
	return unpack(t, f.GetTypedConfig(), &hcmv3.HttpConnectionManager{})
}

func check[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// The values that each stand for a failure seen in the field.
func TestBootstrapValues(t *testing.T) {
	eachBootstrap(t, func(t *testing.T, o BootstrapOptions) {
		b := parseBootstrap(t, o)
		manager := managerOf(t, b, 0)
		hosts, duplex := o.Variant == OverrideHost, o.Body == FullDuplex
		t.Run("EU-13/filter", func(t *testing.T) { filterValues(t, manager, hosts, duplex) })
		t.Run("EU-13/route", func(t *testing.T) {
			routeValues(t, manager.GetRouteConfig().VirtualHosts[0].Routes[0], hosts)
		})
		t.Run("EU-13/pool", func(t *testing.T) { poolValues(t, clusterOf(t, b, "pool"), o.Variant) })
		t.Run("EU-13/picker", func(t *testing.T) { pickerValues(t, clusterOf(t, b, "epp"), hosts) })
		t.Run("EU-13/early strip", func(t *testing.T) {
			list := manager.EarlyHeaderMutationExtensions
			if len(list) != 1 {
				t.Fatalf("%d mutations", len(list))
			}
			m := unpack(t, list[0].TypedConfig, &mutationv3.HeaderMutation{})
			if len(m.Mutations) != 1 || m.Mutations[0].GetRemove() != destinationKey {
				t.Errorf("%v", m)
			}
		})
	})
}

func filterValues(t *testing.T, manager *hcmv3.HttpConnectionManager, hosts, duplex bool) {
	check(t, "number of filters", len(manager.HttpFilters), 2)
	f := unpack(t, manager.HttpFilters[0].GetTypedConfig(), &filterv3.ExternalProcessor{})
	check(t, "message_timeout", f.MessageTimeout.AsDuration(), 5*time.Second)
	c, err := LoadConfig("")
	if err != nil {
		t.Fatal(err)
	}
	if f.MessageTimeout.AsDuration() <= c.Limits.PickDeadline {
		t.Errorf("message_timeout %v is not above the pick deadline %v", f.MessageTimeout.AsDuration(), c.Limits.PickDeadline)
	}
	check(t, "grpc_service.timeout set", f.GrpcService.Timeout != nil, false)
	// Without a host list there is nowhere to fail open to once the body is gone.
	check(t, "failure_mode_allow", f.FailureModeAllow, !duplex || hosts)
	check(t, "status_on_error", int(f.StatusOnError.GetCode()), 503)
	check(t, "allow_content_length_header", f.AllowContentLengthHeader, duplex)
	m, send := f.ProcessingMode, filterv3.ProcessingMode_SEND
	body := modeBuffered
	if duplex {
		body = modeFullDuplex
	}
	check(t, "request_body_mode", m.RequestBodyMode, body)
	check(t, "response_body_mode", m.ResponseBodyMode, modeNone)
	check(t, "request_header_mode", m.RequestHeaderMode, send)
	check(t, "response_header_mode", m.ResponseHeaderMode, send)
	check(t, "request_trailer_mode", m.RequestTrailerMode, send)
	check(t, "response_trailer_mode", m.ResponseTrailerMode, send)
	check(t, "forwarded metadata", fmt.Sprint(f.MetadataOptions.ForwardingNamespaces.Untyped), fmt.Sprint([]string{lbNamespace, subsetNamespace}))
	check(t, "received metadata", fmt.Sprint(f.MetadataOptions.ReceivingNamespaces.Untyped), fmt.Sprint([]string{lbNamespace}))
	check(t, "disable_immediate_response", f.DisableImmediateResponse, false)
	check(t, "allow_mode_override", f.AllowModeOverride, false)
}

func routeValues(t *testing.T, r *routev3.Route, hosts bool) {
	check(t, "request_body_buffer_limit", r.RequestBodyBufferLimit.GetValue(), 32<<20)
	check(t, "timeout", r.GetRoute().Timeout.AsDuration(), 0)
	p := r.GetRoute().RetryPolicy
	check(t, "has retries", p != nil, hosts)
	if p == nil {
		return
	}
	check(t, "retry_on", p.RetryOn, "connect-failure,refused-stream,reset")
	check(t, "num_retries", p.NumRetries.GetValue(), 2)
	check(t, "host_selection_retry_max_attempts", p.HostSelectionRetryMaxAttempts, 5)
	check(t, "retry_host_predicate", p.RetryHostPredicate[0].Name, "envoy.retry_host_predicates.previous_hosts")
}

func poolValues(t *testing.T, c *clusterv3.Cluster, v Variant) {
	limits := c.CircuitBreakers.Thresholds[0]
	check(t, "max_requests", limits.MaxRequests.GetValue(), 40000)
	check(t, "max_pending_requests", limits.MaxPendingRequests.GetValue(), 40000)
	check(t, "max_connections", limits.MaxConnections.GetValue(), 40000)
	dst := c.GetOriginalDstLbConfig()
	switch v {
	case OriginalDst:
		check(t, "metadata_key", dst.MetadataKey.GetKey(), lbNamespace)
		check(t, "metadata_key path", dst.MetadataKey.GetPath()[0].GetKey(), destinationKey)
		check(t, "use_http_header", dst.UseHttpHeader, false)
	case OriginalDstHeader:
		check(t, "use_http_header", dst.UseHttpHeader, true)
		check(t, "http_header_name", dst.HttpHeaderName, destinationKey)
	default:
		check(t, "max_retries", limits.MaxRetries.GetValue(), 40000)
		check(t, "ignore_health_on_host_removal", c.IgnoreHealthOnHostRemoval, true)
		o := unpack(t, c.LoadBalancingPolicy.Policies[0].TypedExtensionConfig.TypedConfig, &overridev3.OverrideHost{})
		check(t, "number of sources", len(o.OverrideHostSources), 1)
		check(t, "source", o.OverrideHostSources[0].Metadata.GetKey(), lbNamespace)
		check(t, "source path", o.OverrideHostSources[0].Metadata.GetPath()[0].GetKey(), destinationKey)
		check(t, "source header", o.OverrideHostSources[0].Header, "")
		check(t, "selected_host_key", o.SelectedHostKey.GetPath()[0].GetKey(), servedKey)
		check(t, "has a fallback policy", len(o.FallbackPolicy.GetPolicies()) > 0, true)
	}
}

func pickerValues(t *testing.T, c *clusterv3.Cluster, hosts bool) {
	limits := c.CircuitBreakers.Thresholds[0]
	check(t, "max_requests", limits.MaxRequests.GetValue(), 40000)
	check(t, "max_pending_requests", limits.MaxPendingRequests.GetValue(), 40000)
	check(t, "connect_timeout", c.ConnectTimeout.AsDuration(), time.Second)
	h := unpack(t, c.TypedExtensionProtocolOptions["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"], &upstreamv3.HttpProtocolOptions{})
	alive := h.GetExplicitHttpConfig().GetHttp2ProtocolOptions().GetConnectionKeepalive()
	check(t, "keepalive interval", alive.GetInterval().AsDuration(), 5*time.Second)
	check(t, "keepalive timeout", alive.GetTimeout().AsDuration(), 2*time.Second)
	// Only with a host list can Envoy go on without the picker.
	check(t, "has health checks", len(c.HealthChecks) > 0, hosts)
	if hosts {
		check(t, "health service", c.HealthChecks[0].GetGrpcHealthCheck().GetServiceName(), healthExtProc)
		if p := c.CommonLbConfig.GetHealthyPanicThreshold(); p == nil || p.Value != 0 {
			t.Errorf("healthy_panic_threshold is %v, want 0", p)
		}
	}
}
