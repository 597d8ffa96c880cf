package serve

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// When one filter leaves every pod out there is one outcome, the same on the wire
// and in the admin API, and the README's table tells it.
func TestOutcomeWhenAllAreLeftOut(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	sample := func(r *rig, change func(*telemetry.Sample)) {
		s := &telemetry.Sample{Engine: pod.EngineVLLM, At: time.Now().UnixNano()}
		change(s)
		r.fleet.Telemetry.Put(r.pod("a").ID, s)
	}
	place := func(r *rig, n int) (all []*view.Placement) {
		for range n {
			all = append(all, r.fleet.Load.Place(r.pod("a"), view.Work{Rank: -1}, time.Now().UnixNano()))
		}
		return all
	}
	for _, c := range []struct {
		filter pick.Verdict
		spec   func(*pod.Spec)
		do     func(*rig)
		kv     []string
		model  string
		status int
		why    string
	}{
		{filter: pick.Unresolved, do: func(r *rig) {
			r.fleet.Pods.Update(r.pod("a").ID, func(p *pod.Pod) { p.Addr = netip.AddrPort{} })
		}, status: 503, why: "no-eligible-pod"},
		{filter: pick.Starting, do: func(r *rig) {
			proven, now := r.add(threePods()[1]), time.Now().UnixNano() // or all are new, and nobody starts slowly
			for i := range pick.DefaultPolicy().Breaker.Depth + 1 {
				p := r.fleet.Load.Place(proven, view.Work{Rank: -1}, now)
				if i == 0 {
					p.FirstByte(now)
				}
			}
			place(r, pick.DefaultPolicy().Breaker.Start)
		}, status: 200, why: "all-starting"},
		{filter: pick.Draining, do: func(r *rig) { r.fleet.Pods.Update(r.pod("a").ID, func(p *pod.Pod) { p.Spec.Draining = true }) }, status: 503, why: "no-eligible-pod"},
		{filter: pick.OtherModel, spec: func(s *pod.Spec) { s.Model = "other" }, status: 503, why: "no-eligible-pod"},
		{filter: pick.OtherRole, spec: func(s *pod.Spec) { s.Role = pod.RolePrefill }, status: 503, why: "no-eligible-pod"},
		{filter: pick.NoAdapter, spec: func(s *pod.Spec) { s.Adapters = []string{} }, model: "ad", status: 503, why: "no-eligible-pod"},
		{filter: pick.NotInSubset, kv: []string{subsetKey, "10.9.9.9:1"}, status: 503, why: "no-eligible-pod"},
		{filter: pick.BreakerOpen, do: func(r *rig) { place(r, pick.DefaultPolicy().Breaker.Depth) }, status: 200, why: "all-breakers-open"},
		{filter: pick.BreakerOpen, do: func(r *rig) { place(r, pick.DefaultPolicy().Breaker.Depth) }, kv: []string{"x-gateway-inference-objective", "-1"}, status: 429, why: "shed"},
		{filter: pick.Asleep, do: func(r *rig) { sample(r, func(s *telemetry.Sample) { s.Asleep = true }) }, status: 200, why: "all-asleep"},
		{filter: pick.Fatal, do: func(r *rig) { sample(r, func(s *telemetry.Sample) { s.Device.Known, s.Device.Fatal = true, true }) }, status: 200, why: "all-hardware-fatal"},
		{filter: pick.TooLong, spec: func(s *pod.Spec) { s.MaxContext = 10 }, status: 200, why: "all-contexts-too-short"},
		{filter: pick.NotAnswering, do: func(r *rig) {
			r.fleet.Telemetry.Drop(r.pod("a").ID)
			r.fleet.Sync.Put(r.pod("a").Members[0], view.Sync{State: view.Down})
			r.fleet.Telemetry.FailMute(r.pod("a").ID, "refused", time.Now().UnixNano())
		}, status: 200, why: "all-not-answering"},
		{filter: pick.Failing, do: func(r *rig) {
			for _, p := range place(r, 5) {
				p.Status(true, time.Now().UnixNano())
				p.End(time.Now().UnixNano())
			}
		}, status: 200, why: "all-failing"},
	} {
		t.Run(fmt.Sprintf("%s/%d", c.filter, c.status), func(t *testing.T) {
			spec := threePods()[0]
			if c.spec != nil {
				c.spec(&spec)
			}
			r := newRig(t, rigOptions{pods: []pod.Spec{spec}})
			if c.do != nil {
				c.do(r)
			}
			model := "m"
			if c.model != "" {
				model = c.model
			}
			body := completion(model, ids(1, 64))

			w := r.admin("POST", "/v1/explain?path="+completionsPath, string(body), c.kv...)
			var x pick.Explanation
			if err := json.Unmarshal(w.Body.Bytes(), &x); err != nil || w.Code != 200 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if x.Pick.Why == nil || *x.Pick.Why != c.why || x.Pods[0].Filter == nil || x.Pods[0].Filter.Name != c.filter.String() {
				t.Errorf("explained: why %v, filter %+v", x.Pick.Why, x.Pods[0].Filter)
			}

			head := reqHeaders(fullDuplex, false, completionsPath, c.kv...)
			if c.filter == pick.NotInSubset {
				head = withSubset(reqHeaders(fullDuplex, false, completionsPath), c.kv[1])
			}
			m := r.ask(head, reqBody(body, true))[0]
			im, status := m.GetImmediateResponse(), 200
			if im != nil {
				status = int(im.GetStatus().GetCode())
			}
			if status != c.status || status == 200 && destination(t, m) != spec.Address {
				t.Errorf("status %d, want %d", status, c.status)
			}
			if retry := im != nil && immediateHeader(im, "retry-after") != ""; retry != (c.status == 429) {
				t.Errorf("retry-after: %v", retry)
			}
			row := fmt.Sprintf("| `%s` | %d | `%s` |", c.filter, c.status, c.why)
			if !strings.Contains(string(readme), row) {
				t.Errorf("README.md has no row %s", row)
			}
		})
	}
}
