package serve

import (
	"fmt"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/override_host/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"github.com/goccy/go-yaml"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

func TestBootstrapsAreValid(t *testing.T) {
	for _, v := range Variants() {
		for _, body := range Bodies() {
			t.Run(fmt.Sprintf("EU-13/%s/%s", v, body), func(t *testing.T) {
				o := DefaultBootstrap()
				o.Variant, o.Body, o.EPPHealth, o.AccessLog = v, body, 9003, "/dev/stdout"
				if v == OverrideHost {
					o.Baseline, o.Fallbacks = "[::1]:10081", 1
				}
				b := parseBootstrap(t, o)
				hosts := v == OverrideHost
				if got := clusterOf(t, b, "pool").GetType() == clusterv3.Cluster_EDS; got != hosts {
					t.Errorf("host list: %v, want %v", got, hosts)
				}
				if got := clusterOf(t, b, "epp").GetType(); got != clusterv3.Cluster_STATIC {
					t.Errorf("picker's cluster: %v", got)
				}
			})
		}
	}
}

func TestBootstrapOptions(t *testing.T) {
	tests := []struct {
		name   string
		change func(*BootstrapOptions)
		want   string // part of the error, "" = valid
	}{
		{"defaults", func(*BootstrapOptions) {}, ""},
		{"picker by name", func(o *BootstrapOptions) { o.EPP = "eppctl.infra:9002" }, ""},
		{"no admin page", func(o *BootstrapOptions) { o.Admin = "" }, ""},
		{"no engine probes", func(o *BootstrapOptions) { o.EngineHealth = "" }, ""},
		{"unknown variant", func(o *BootstrapOptions) { o.Variant = "istio" }, `variant: found "istio"`},
		{"unknown body mode", func(o *BootstrapOptions) { o.Body = "streamed" }, `body mode: found "streamed"`},
		{"no host file", func(o *BootstrapOptions) { o.EndpointsFile = "" }, "endpoints file"},
		{"fallbacks without hosts", func(o *BootstrapOptions) { o.Variant, o.Fallbacks = OriginalDst, 1 }, "fallbacks need override-host"},
		{"baseline without hosts", func(o *BootstrapOptions) { o.Variant, o.Baseline = OriginalDst, "127.0.0.1:1" }, "no host list"},
		{"no port", func(o *BootstrapOptions) { o.Listen = "127.0.0.1" }, "expected HOST:PORT"},
		{"bad port", func(o *BootstrapOptions) { o.EPP = "127.0.0.1:http" }, `port "http"`},
		{"no host", func(o *BootstrapOptions) { o.Listen = ":10080" }, "IP address or a DNS name"},
		{"quote in a path", func(o *BootstrapOptions) { o.EndpointsFile = "/tmp/a\"b" }, `character '"'`},
		{"quote in a host", func(o *BootstrapOptions) { o.EPP = "a\"b:9002" }, "IP address or a DNS name"},
		{"quote in the access log", func(o *BootstrapOptions) { o.AccessLog = "/tmp/a\"b" }, `character '"'`},
		{"no size", func(o *BootstrapOptions) { o.RequestBytes = 0 }, "request bytes: found 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := DefaultBootstrap()
			tt.change(&o)
			if tt.want == "" {
				parseBootstrap(t, o)
				return
			}
			if _, err := Bootstrap(o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// parseBootstrap reads the YAML into Envoy's own type and validates it and every
// extension inside.
func parseBootstrap(t *testing.T, o BootstrapOptions) *bootstrapv3.Bootstrap {
	t.Helper()
	text, err := Bootstrap(o)
	if err != nil {
		t.Fatal(err)
	}
	js, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var b bootstrapv3.Bootstrap
	if err := protojson.Unmarshal(js, &b); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := b.ValidateAll(); err != nil {
		t.Fatal(err)
	}
	if n := validateAnys(t, b.ProtoReflect()); n < 4 {
		t.Fatalf("only %d extensions were checked", n)
	}
	return &b
}

// validateAnys checks the messages inside Any fields, which ValidateAll skips.
func validateAnys(t *testing.T, m protoreflect.Message) int {
	t.Helper()
	n := 0
	if a, ok := m.Interface().(*anypb.Any); ok {
		inner, err := a.UnmarshalNew()
		if err != nil {
			t.Fatalf("%s: %v", a.TypeUrl, err)
		}
		if err := inner.(interface{ ValidateAll() error }).ValidateAll(); err != nil {
			t.Fatalf("%s: %v", a.TypeUrl, err)
		}
		return 1 + validateAnys(t, inner.ProtoReflect())
	}
	visit := func(v protoreflect.Value) { n += validateAnys(t, v.Message()) }
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			if fd.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { visit(v); return true })
			}
		case fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				visit(v.List().Get(i))
			}
		default:
			visit(v)
		}
		return true
	})
	return n
}

func clusterOf(t *testing.T, b *bootstrapv3.Bootstrap, name string) *clusterv3.Cluster {
	t.Helper()
	for _, c := range b.StaticResources.Clusters {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no cluster %s in %v", name, proto.Size(b))
	return nil
}
