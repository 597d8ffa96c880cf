package eval

import "github.com/eppctl/eppctl/internal/inspect/replay/route"

// The loads of the comparison, as shares of a scenario's load 1.
var loads = []float64{0.6, 1, 1.15}

// own is the preset that the product ships; fixed is the one it is held against
// where several routers share a fleet.
const (
	own   = "pool"
	fixed = "fixed"
)

// nearest are the published policies that come nearest, which are run at every load.
// The others lie further behind at load 1 already.
var nearest = []string{"lmetric", "min-ttft", "llmd-sticky", "llmd-blend"}

// omniscient are the bounds; the better of the two counts.
var omniscient = []string{"omniscient", "omniscient-4"}

// far are all that nearest and omniscient leave out: run at load 1, with one seed.
func far() (names []string) {
	near := map[string]bool{own: true, fixed: true}
	for _, n := range append(append([]string(nil), nearest...), omniscient...) {
		near[n] = true
	}
	for _, p := range route.Policies() {
		if !near[p.Name] {
			names = append(names, p.Name)
		}
	}
	return names
}

// sweep is the load sweep on the conversation trace, in shares of its load 1: from
// where round robin begins to fail up to past everybody.
var (
	sweepLoads    = []float64{0.4, 0.467, 0.533, 0.667, 0.8, 0.933, 1, 1.067, 1.133, 1.2}
	sweepPolicies = []string{own, fixed, "llmd-blend", "least-in-flight", "round-robin"}
)

// replicated are the scenarios that are run with several routers.
var replicated = []string{"conversation", "tool", "hot", "b2b", "agent"}

// shaken are the variants that are run on the conversation trace.
var shaken = []string{"scrape-50ms", "scrape-1s", "scrape-5s", "events-1s", "events-5s", "loss-1%", "loss-1%-for-good", "rate-half", "rate-double", "rate-default", "restarts"}

// Matrix is every cell of the comparison, for seeds 1 to n.
func Matrix(n int) []Cell {
	var m matrix
	seeds := uint64(n)
	for _, s := range Scenarios {
		for _, p := range append(append([]string{own, fixed}, nearest...), omniscient...) {
			for _, load := range loads {
				m.add(Cell{Scenario: s.Name, Load: load, Policy: p}, seeds)
			}
		}
		for _, p := range far() {
			m.add(Cell{Scenario: s.Name, Load: 1, Policy: p}, 1)
		}
	}
	m.add(Cell{Scenario: "hot", Load: 1, Policy: "least-in-flight"}, seeds)
	for _, p := range sweepPolicies {
		for _, load := range sweepLoads {
			m.add(Cell{Scenario: "conversation", Load: load, Policy: p}, 1)
		}
	}
	for _, s := range replicated {
		for _, v := range []string{"replicas-2", "replicas-4"} {
			m.add(Cell{Scenario: s, Load: 1, Policy: own, Variant: v}, seeds)
			m.add(Cell{Scenario: s, Load: 1, Policy: fixed, Variant: v}, seeds)
		}
	}
	for _, v := range shaken {
		m.add(Cell{Scenario: "conversation", Load: 1, Policy: own, Variant: v}, seeds)
	}
	m.add(Cell{Scenario: "conversation", Load: 0.8, Policy: own, Variant: "slow"}, seeds)
	return m.cells
}

// matrix collects cells, each once.
type matrix struct {
	cells []Cell
	seen  map[Cell]bool
}

func (m *matrix) add(c Cell, seeds uint64) {
	if m.seen == nil {
		m.seen = map[Cell]bool{}
	}
	for c.Seed = 1; c.Seed <= seeds; c.Seed++ {
		if !m.seen[c] {
			m.seen[c] = true
			m.cells = append(m.cells, c)
		}
	}
}
