package view

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// adapterEngine keeps adapters as vLLM does: what a request runs with is touched in
// every step, and a load displaces what was touched least recently.
type adapterEngine struct {
	keep   int
	loaded []string // the most recently used first
	users  map[string]int
}

func (e *adapterEngine) touch(name string) {
	e.loaded = slices.DeleteFunc(e.loaded, func(x string) bool { return x == name })
	e.loaded = slices.Insert(e.loaded, 0, name)
	e.loaded = e.loaded[:min(len(e.loaded), e.keep)]
}

func (e *adapterEngine) begin(name string) {
	e.users[name]++
	e.touch(name)
}

func (e *adapterEngine) end(name string) {
	if e.users[name]--; e.users[name] == 0 {
		delete(e.users, name)
	}
	others := make([]string, 0, len(e.users))
	for n := range e.users {
		others = append(others, n)
	}
	e.touch(name)
	for _, n := range others {
		e.touch(n)
	}
}

// page is what the engine shows after prev.
func (e *adapterEngine) page(prev *telemetry.Sample, max int, at int64) *telemetry.Sample {
	s := &telemetry.Sample{At: at, LoRA: telemetry.LoRA{Known: true, Max: max}}
	for n := range e.users {
		s.LoRA.Running = append(s.LoRA.Running, n)
	}
	slices.Sort(s.LoRA.Running)
	s.Carry(prev, 0)
	return s
}

// Whoever placed the requests, this router, another one or both: what counts as
// loaded is what an engine of that size still has, as long as a page comes between
// two changes. Our own placements need no page.
func TestResidencyIsTheEnginesCache(t *testing.T) {
	const keep, names, slots = 4, 7, 3
	for _, c := range []struct {
		name         string
		ours, scrape float64
	}{{"ours alone", 1, 0.1}, {"another router's", 0, 1}, {"both", 0.5, 1}} {
		t.Run(c.name, func(t *testing.T) {
			rnd := rand.New(rand.NewSource(4))
			l, p := NewLedger(), somePod(1, 1)
			e := &adapterEngine{keep: keep, users: map[string]int{}}
			type request struct {
				adapter string
				place   *Placement
			}
			var flying []request
			prev := e.page(nil, slots, 1)
			for now := int64(2); now < 4000; now++ {
				if name := fmt.Sprint("adapter-", rnd.Intn(names)); len(flying) < slots && rnd.Intn(2) == 0 {
					r := request{adapter: name}
					if rnd.Float64() < c.ours {
						r.place = l.Place(p, Work{Adapter: name, Rank: -1}, now)
					}
					e.begin(name)
					flying = append(flying, r)
				} else if len(flying) > 0 {
					i := rnd.Intn(len(flying))
					r := flying[i]
					flying = slices.Delete(flying, i, i+1)
					e.end(r.adapter)
					if r.place != nil {
						r.place.FirstByte(now)
						r.place.End(now)
					}
				}
				now++
				if rnd.Float64() < c.scrape {
					prev = e.page(prev, slots, now)
				}
				for i := range names {
					name := fmt.Sprint("adapter-", i)
					x := l.Residency(p, name, prev)
					if want := e.users[name] > 0; x.InUse != want && c.scrape == 1 {
						t.Fatalf("at %d: %s in use %v, want %v", now, name, x.InUse, want)
					}
					if c.scrape < 1 && prev.LoRA.Active(name) {
						continue // a page of another time says so
					}
					got, want := x.InUse || x.Seen && x.Newer < keep, slices.Contains(e.loaded, name)
					if got && !want || want && !got {
						t.Fatalf("at %d: %s resident %v (%+v), the engine has %v", now, name, got, x, e.loaded)
					}
				}
			}
		})
	}
}

func TestResidencyEndsWithTheProcess(t *testing.T) {
	l, p := NewLedger(), somePod(1, 1)
	first := &telemetry.Sample{At: 10, LoRA: telemetry.LoRA{Known: true, Max: 2, Running: []string{"a"}}}
	r := l.Place(p, Work{Adapter: "b", Rank: -1}, 20)
	if x := l.Residency(p, "b", nil); !x.InUse {
		t.Errorf("in flight, no page: %+v", x)
	}
	r.FirstByte(21)
	r.End(22)
	second := &telemetry.Sample{At: 30, LoRA: telemetry.LoRA{Known: true, Max: 2}}
	second.Carry(first, 0)
	for name, want := range map[string]Residency{"a": {Seen: true, Newer: 1}, "b": {Seen: true}, "c": {}} {
		if x := l.Residency(p, name, second); x != want {
			t.Errorf("%s: %+v, want %+v", name, x, want)
		}
	}
	if x := l.Residency(p, "b", nil); x != (Residency{}) {
		t.Errorf("without a page nothing tells that it is the same process: %+v", x)
	}
	restarted := &telemetry.Sample{At: 40, LoRA: telemetry.LoRA{Known: true, Max: 2}} // not carried on
	for _, name := range []string{"a", "b"} {
		if x := l.Residency(p, name, restarted); x.Seen || x.InUse {
			t.Errorf("%s: %+v after a restart", name, x)
		}
	}
}

func TestAdapterHistoryIsBounded(t *testing.T) {
	l, p := NewLedger(), somePod(1, 1)
	l.Place(p, Work{Adapter: "stays", Rank: -1}, 1)
	for i := range 3 * maxAdapters {
		r := l.Place(p, Work{Adapter: fmt.Sprint(i), Rank: -1}, int64(2+i))
		if i%2 == 0 {
			r.FirstByte(int64(2 + i))
		}
		r.End(int64(2 + i))
	}
	a := l.account(p).adapters // full, but for the last one, which was not answered
	if len(a) != maxAdapters-1 || a.at("stays") < 0 || a.at(fmt.Sprint(3*maxAdapters-2)) < 0 {
		t.Errorf("%d adapters, in use kept %v, newest kept %v", len(a), a.at("stays") >= 0, a.at(fmt.Sprint(3*maxAdapters-2)) >= 0)
	}
	if a.at(fmt.Sprint(3*maxAdapters-1)) >= 0 {
		t.Error("a request that was not answered has loaded its adapter")
	}
}
