package serve

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/view"
)

// One pod that says nothing is waited for briefly, a fleet that says nothing and a
// history that is being replayed for longer, and nothing for ever.
func TestReadinessIsPatient(t *testing.T) {
	w := patience{quiet: 2 * time.Second, all: 10 * time.Second}
	type member struct {
		engine pod.Engine
		state  view.SyncState
		dns    bool // not resolved
	}
	ready := member{pod.EngineVLLM, view.Live, false}
	replayed := member{pod.EngineVLLM, view.Syncing, false}
	unasked := member{engine: pod.EngineUnknown}
	for _, c := range []struct {
		name string
		pods []member
		from time.Duration // ready from this age on
	}{
		{"no pods", nil, 0},
		{"all known", []member{ready, ready}, 0},
		{"lost history is no reason to wait", []member{ready, {pod.EngineVLLM, view.Partial, false}, {pod.EngineVLLM, view.Down, false}}, 0},
		{"one does not say what it is", []member{ready, unasked}, w.quiet},
		{"one name does not resolve", []member{ready, {pod.EngineVLLM, view.Live, true}}, w.quiet},
		{"one event port does not connect", []member{{pod.EngineVLLM, view.Connecting, false}, ready}, w.quiet},
		{"one stream has not begun", []member{{pod.EngineVLLM, view.NoEvents, false}, ready}, w.quiet},
		{"one is being replayed", []member{ready, replayed}, w.all},
		{"one is being replayed, one is quiet", []member{unasked, ready, replayed}, w.all},
		{"nobody says anything", []member{unasked, unasked}, w.all},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet(&Config{})
			for i, m := range c.pods {
				at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 8000)
				s := pod.Spec{Name: fmt.Sprint(i), Address: at.String(), Engine: m.engine, Events: []string{"tcp://10.0.0.1:5557"}}
				if m.dns {
					s.Address, at = "name:8000", netip.AddrPort{}
				}
				p, err := f.Pods.Add(s, at)
				if err != nil {
					t.Fatal(err)
				}
				f.Sync.Put(p.Members[0], view.Sync{State: m.state})
			}
			v := f.View()
			for _, age := range []time.Duration{0, w.quiet - 1, w.quiet, w.all - 1, w.all} {
				if got := w.complete(&v, age); got != (age >= c.from) {
					t.Errorf("after %v: ready %v", age, got)
				}
			}
		})
	}
}

// patient changes for how long readiness waits. Call it before launch: processes of
// this test end before it is changed back.
func patient(t *testing.T, w patience) {
	before := startupPatience
	startupPatience = w
	t.Cleanup(func() { startupPatience = before })
}

// mute is a server that accepts and answers nothing.
func mute(t *testing.T) (entry string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return fmt.Sprintf("- {name: mute, address: %q}\n", l.Addr())
}

// simLives waits until the simulated engine is known, whatever the other pods do.
func (p *process) simLives() {
	p.t.Helper()
	waitFor(p.t, "the engine's telemetry and events", func() bool {
		for _, x := range p.state().Pods {
			if x.Name == "sim-0" && x.Telemetry.State == "fresh" && x.Ranks[0].Sync == "live" {
				return true
			}
		}
		return false
	})
}

// A pod that takes connections and says nothing holds readiness no longer than a
// moment; the others are served.
func TestReadinessWaitsForNoMutePod(t *testing.T) {
	patient(t, patience{quiet: 100 * time.Millisecond, all: time.Hour})
	entry := mute(t)
	p := launch(t, 1, func(s string) string { return strings.Replace(s, "pods:\n", "pods:\n"+entry, 1) })
	waitFor(t, "SERVING", func() bool { return p.check(healthReadiness) == healthpb.HealthCheckResponse_SERVING })
	p.simLives()
	for _, x := range p.state().Pods {
		if x.Name == "mute" && x.Engine != pod.EngineUnknown.String() {
			t.Errorf("the mute pod has spoken: %+v", x)
		}
	}
}

// As long as the fleet is not known no pick would be worth much: Envoy must not
// be told to send, and nobody to restart us.
func TestNotReadyUntilSynced(t *testing.T) {
	t.Run("EU-07/unsynced", func(t *testing.T) {
		patient(t, patience{quiet: time.Hour, all: time.Hour})
		entry := mute(t)
		p := launch(t, 1, func(s string) string { return strings.Replace(s, "pods:\n", "pods:\n"+entry, 1) })
		p.simLives()
		for _, name := range []string{healthOverall, healthReadiness, healthExtProc} {
			if got := p.check(name); got != healthpb.HealthCheckResponse_NOT_SERVING {
				t.Errorf("%q: %v before the fleet is known", name, got)
			}
		}
		if got := p.check(healthLiveness); got != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("liveness: %v", got)
		}
		text, err := os.ReadFile(p.config)
		if err != nil {
			t.Fatal(err)
		}
		p.write(strings.Replace(string(text), entry, "", 1))
		p.reload <- struct{}{}
		for _, name := range []string{healthOverall, healthReadiness, healthExtProc} {
			waitFor(t, "SERVING", func() bool { return p.check(name) == healthpb.HealthCheckResponse_SERVING })
		}
	})
}
