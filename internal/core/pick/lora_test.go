package pick

import (
	"testing"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// adapterQuery asks for adapter b.
func (f *fleet) adapterQuery() *Query {
	q := f.query(tokens(1, 64), start)
	q.Adapter, q.Prompt.LoRA = "b", "b"
	return q
}

// What one page alone says.
func TestAdapterStates(t *testing.T) {
	for _, c := range []struct {
		name string
		lora telemetry.LoRA
		want AdapterState
	}{
		{"running", telemetry.LoRA{Known: true, Max: 1, Running: []string{"a", "b"}}, AdapterResident},
		{"waiting", telemetry.LoRA{Known: true, Max: 1, Waiting: []string{"b"}}, AdapterResident},
		{"room", telemetry.LoRA{Known: true, Max: 2, Running: []string{"a"}, Waiting: []string{"a"}}, AdapterLoadable},
		{"full", telemetry.LoRA{Known: true, Max: 2, Running: []string{"a"}, Waiting: []string{"c"}}, AdapterSaturated},
		{"limit not told", telemetry.LoRA{Known: true, Running: []string{"a", "c", "d"}}, AdapterLoadable},
		{"slots free", telemetry.LoRA{SlotsUsed: known(1), SlotsTotal: known(2)}, AdapterLoadable},
		{"slots full", telemetry.LoRA{SlotsUsed: known(2), SlotsTotal: known(2)}, AdapterSaturated},
		{"no data", telemetry.LoRA{}, AdapterUnknown},
	} {
		f := newFleet(t, 2)
		f.Telemetry.Put(0, &telemetry.Sample{At: start, LoRA: c.lora})
		card := f.decide(f.adapterQuery())
		if got := card.Rows[0].Adapter; got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if got := card.Rows[1].Adapter; got != AdapterUnknown {
			t.Errorf("%s: never scraped is %s", c.name, got)
		}
	}
}

// An adapter that idles stays loaded until others displace it or the engine starts
// again: pages and placements in sequence, one step each, and adapter b's state.
func TestAdapterStaysResident(t *testing.T) {
	type step struct {
		page    []string // running; nil = no page
		place   string
		end     string
		restart bool
		want    AdapterState
	}
	idle := []string{}
	for _, c := range []struct {
		name  string
		max   int
		cpu   int // max_cpu_loras
		steps []step
	}{
		{"seen, idle, displaced", 2, 0, []step{
			{page: idle, want: AdapterLoadable}, {page: []string{"b"}, want: AdapterResident}, {page: idle, want: AdapterResident},
			{page: []string{"a"}, want: AdapterResident}, {page: []string{"c"}, want: AdapterLoadable}, {page: idle, want: AdapterLoadable},
		}},
		{"placed, answered, displaced by placements", 2, 0, []step{
			{page: idle, want: AdapterLoadable}, {place: "b", want: AdapterResident}, {end: "b", want: AdapterResident},
			{place: "a", want: AdapterResident}, {place: "c", want: AdapterSaturated}, {end: "a", want: AdapterLoadable}, {end: "c", want: AdapterLoadable},
		}},
		{"used again in between", 2, 0, []step{
			{page: []string{"b"}, want: AdapterResident}, {page: []string{"a"}, want: AdapterResident}, {page: []string{"b"}, want: AdapterResident},
			{page: []string{"c"}, want: AdapterResident},
		}},
		{"kept in host memory", 1, 3, []step{
			{page: []string{"b"}, want: AdapterResident}, {page: []string{"a"}, want: AdapterSaturated}, {page: idle, want: AdapterResident},
			{page: []string{"c"}, want: AdapterSaturated}, {page: idle, want: AdapterResident}, {page: []string{"d"}, want: AdapterSaturated}, {page: idle, want: AdapterLoadable},
		}},
		{"another process", 2, 0, []step{
			{page: []string{"b"}, want: AdapterResident}, {page: idle, want: AdapterResident}, {page: idle, restart: true, want: AdapterLoadable},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet(t, 0)
			p := f.add(pod.Spec{Name: "p", Model: model, MaxCPULoRAs: c.cpu}, "10.0.0.1:8000")
			flying := map[string]*view.Placement{}
			var page *telemetry.Sample
			now := start
			for i, s := range c.steps {
				now += 100 * ms
				switch {
				case s.page != nil:
					next := &telemetry.Sample{At: now, LoRA: telemetry.LoRA{Known: true, Max: c.max, Running: s.page}}
					if !s.restart {
						next.Carry(page, 0)
					}
					page = next
					f.Telemetry.Put(p.ID, page)
				case s.place != "":
					flying[s.place] = f.Fleet.Place(p, view.Work{Adapter: s.place, Rank: -1}, now)
				default:
					flying[s.end].FirstByte(now)
					flying[s.end].End(now)
				}
				q := f.adapterQuery()
				q.Now = now
				if r := f.decide(q).Rows[0]; r.Adapter != s.want {
					t.Fatalf("step %d: %s, want %s (%+v, %d slots)", i, r.Adapter, s.want, r.LoRA, r.Slots)
				}
			}
		})
	}
}

// A burst for one adapter stays on the pod that its first request loaded it on,
// also between requests and before any page shows it.
func TestRequestsFollowTheirAdapter(t *testing.T) {
	f := newFleet(t, 4)
	for i := range 4 {
		f.Telemetry.Put(pod.ID(i), &telemetry.Sample{At: start, LoRA: telemetry.LoRA{Known: true, Max: 2}})
	}
	q := f.adapterQuery()
	first, r := f.place(q)
	r.FirstByte(start + ms)
	r.End(start + 2*ms)
	for i := range 20 {
		q := f.query(tokens(10+i, 64), start+int64(3+i)*ms)
		q.Adapter, q.Prompt.LoRA = "b", "b"
		if c := f.decide(q); winner(c) != winner(first) {
			t.Fatalf("request %d went to %s, the adapter is on %s\n%s", i, winner(c), winner(first), c)
		}
	}
	c, v := &Card{}, f.View()
	if n := testing.AllocsPerRun(50, func() { Decide(&v, q, f.policy, c) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
