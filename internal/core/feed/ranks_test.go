package feed

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// tellsRanks makes the engine name n event ports.
func (e *engine) tellsRanks(n int) {
	var ports []string
	for i := range n {
		ports = append(ports, fmt.Sprintf("127.0.0.1:%d", 20_000+i), "")
	}
	e.tells(ports...)
}

func finding(f *Feed, code string) *Finding {
	for _, x := range f.Findings() {
		if x.Code == code {
			return &x
		}
	}
	return nil
}

// occupy fills the table but for some members and returns what frees it again.
func occupy(t *testing.T, fleet *view.Fleet, free int) (release func()) {
	t.Helper()
	p, err := fleet.Pods.Add(pod.Spec{Name: "others", Ranks: pod.MaxMembers - free}, netip.AddrPort{})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		fleet.Pods.Remove(p.ID)
		fleet.Pods.Free(p)
	}
}

// An engine that claims to be half of a fleet is routed to by load alone.
func TestFeedTooManyRanksTold(t *testing.T) {
	for _, n := range []int{maxToldRanks + 1, 900, 5000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			e := newEngine(t, "m")
			e.tellsRanks(n)
			f, fleet := startFeed(t, Options{})
			f.Apply([]pod.Spec{{Name: "p", Address: e.address()}})
			p := waitPod(t, fleet, "p", func(p *pod.Pod) bool { return p.Spec.Model == "m" })
			if len(p.Members) != 1 || p.Spec.Ranks != 1 || len(p.Spec.Events) != 0 || p.Target == "" {
				t.Errorf("%+v", p)
			}
			x := finding(f, "too-many-ranks")
			if x == nil || x.Expected != fmt.Sprint(n) || x.Value != "1" || x.Field != "ranks" {
				t.Errorf("findings %+v", f.Findings())
			}
		})
	}
	t.Run("as many as are believed", func(t *testing.T) {
		e := newEngine(t, "m")
		e.tellsRanks(maxToldRanks)
		spec, findings, err := discover(t.Context(), e.Client(), pod.Spec{Name: "p", Address: e.address(), Ranks: 1})
		if err != nil || spec.Ranks != maxToldRanks || len(spec.Events) != maxToldRanks || slices.Contains(codesOf(findings), "too-many-ranks") {
			t.Errorf("%d ranks, %d endpoints, %v, %v", spec.Ranks, len(spec.Events), findings, err)
		}
	})
	t.Run("more, but configured", func(t *testing.T) {
		e := newEngine(t, "m")
		e.tellsRanks(200)
		spec, findings, err := discover(t.Context(), e.Client(), pod.Spec{Name: "p", Address: e.address(), Ranks: 200})
		if err != nil || spec.Ranks != 200 || len(spec.Events) != 200 || slices.Contains(codesOf(findings), "too-many-ranks") {
			t.Errorf("%d ranks, %d endpoints, %v, %v", spec.Ranks, len(spec.Events), findings, err)
		}
	})
}

// A pod whose ranks find no room stays in the fleet with one, and gets them when
// there is room.
func TestFeedWaitsForRoomForRanks(t *testing.T) {
	e := newEngine(t, "m")
	p0, p1 := publisher(t, "127.0.0.1:0", zmtp.Options{}), publisher(t, "127.0.0.1:0", zmtp.Options{})
	e.tells(p0.Addr(), "", p1.Addr(), "")
	f, fleet := startFeed(t, Options{})
	f.roomEvery = 10 * time.Millisecond
	release := occupy(t, fleet, growReserve+1) // one for the pod as configured
	f.Apply([]pod.Spec{{Name: "p", Address: e.address()}})
	first := fleet.Pods.Snapshot().ByName("p")
	p := waitPod(t, fleet, "p", func(p *pod.Pod) bool { return p.Spec.Model == "m" })
	eventually(t, "a finding", func() bool { x := finding(f, "fleet-full"); return x != nil && x.Expected == "2" }, func() string { return fmt.Sprint(f.Findings()) })
	time.Sleep(50 * time.Millisecond) // it looks for room in vain
	if q := fleet.Pods.Snapshot().ByName("p"); q == nil || q.Epoch != first.Epoch || len(p.Members) != 1 || len(q.Spec.Events) != 0 {
		t.Errorf("%+v", q)
	}
	release()
	p = waitPod(t, fleet, "p", func(p *pod.Pod) bool { return len(p.Members) == 2 && len(p.Spec.Events) == 2 })
	subscribed(t, p1)
	p1.Send("", 0, stored(1))
	waitHeld(t, fleet, p.Members[1], prompt("m", 1), 2)
	eventually(t, "no finding", func() bool { return finding(f, "fleet-full") == nil }, func() string { return fmt.Sprint(f.Findings()) })
}

// Two pods may see the same room. The one that comes too late has left the table
// by then, and returns as it was configured.
func TestRegisterFallsBack(t *testing.T) {
	f, fleet := startFeed(t, Options{})
	occupy(t, fleet, 1)
	k := &keeper{feed: f, base: pod.Spec{Name: "p", Address: "127.0.0.1:1", Ranks: 1}, log: f.opts.Log}
	k.known = told{engine: pod.EngineVLLM, aboutModels: question{notOffered, errNotJSON}, aboutEvents: question{given, nil},
		events: []eventSource{{true, "tcp://*:1", ""}, {true, "tcp://*:2", ""}}}
	k.complete()
	if k.spec.Ranks != 2 {
		t.Fatalf("%+v", k.spec)
	}
	if err := k.register(); err != nil || len(k.pod.Members) != 1 || !k.confined || len(k.pod.Spec.Events) != 0 {
		t.Errorf("%v, %+v", err, k.pod)
	}
}

// A pod for which there is no room at all is taken in when there is some.
func TestFeedWaitsForRoom(t *testing.T) {
	e := newEngine(t, "m")
	f, fleet := startFeed(t, Options{})
	release := occupy(t, fleet, 0)
	f.Apply([]pod.Spec{{Name: "p", Address: e.address()}, {Name: "q", Address: e.address()}})
	if n := len(fleet.Pods.Snapshot().Pods); n != 1 {
		t.Fatalf("%d pods", n)
	}
	eventually(t, "a finding for each", func() bool {
		return slices.Equal(codesOf(f.Findings()), []string{"fleet-full", "fleet-full"})
	}, func() string { return fmt.Sprint(f.Findings()) })
	f.Apply([]pod.Spec{{Name: "p", Address: e.address(), Role: pod.RoleDecode}}) // q ends while it waits
	release()
	waitPod(t, fleet, "p", func(p *pod.Pod) bool { return p.Spec.Model == "m" && p.Spec.Role == pod.RoleDecode })
	eventually(t, "no finding", func() bool { return finding(f, "fleet-full") == nil }, func() string { return fmt.Sprint(f.Findings()) })
	if fleet.Pods.Snapshot().ByName("q") != nil {
		t.Error("q is back")
	}
}

// A pod that returns is scraped again within two seconds or so.
func TestScrapePace(t *testing.T) {
	for _, every := range []time.Duration{DefaultScrapeInterval, deviceInterval} {
		pace := every
		for range 20 {
			pace = slower(pace, every)
		}
		if pace != max(every, 2*time.Second) {
			t.Errorf("every %v: %v after many failures", every, pace)
		}
	}
}
