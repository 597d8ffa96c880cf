package serve

import (
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// Names of the health service, part of the endpoint-picker protocol.
const (
	healthOverall   = ""
	healthLiveness  = "liveness"
	healthReadiness = "readiness"
)

var healthExtProc = extproc.ExternalProcessor_ServiceDesc.ServiceName

// Health answers gRPC health checks: liveness as long as the process does, the
// other names once the fleet is known and until it drains. Names nobody knows
// are NOT_FOUND to Check and SERVICE_UNKNOWN to Watch. Safe for concurrent use.
type Health struct{ *health.Server }

func newHealth() Health {
	h := Health{health.NewServer()}
	h.SetServingStatus(healthLiveness, healthpb.HealthCheckResponse_SERVING)
	h.Ready(false)
	return h
}

// Ready sets every name but liveness.
func (h Health) Ready(ready bool) {
	s := healthpb.HealthCheckResponse_NOT_SERVING
	if ready {
		s = healthpb.HealthCheckResponse_SERVING
	}
	for _, name := range [...]string{healthOverall, healthReadiness, healthExtProc} {
		h.SetServingStatus(name, s)
	}
}
