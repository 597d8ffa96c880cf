package engine

import "slices"

// Gauges are what a metrics page would say.
type Gauges struct {
	Waiting, Running int
	Usage            float64
	Blocks           int
	ActiveAdapters   []string // running, sorted
	QueuedAdapters   []string // waiting, sorted
}

// Gauges reads the engine's state.
func (e *Engine) Gauges() Gauges {
	return Gauges{
		Waiting: len(e.waiting), Running: len(e.running), Usage: e.pool.usage(), Blocks: e.pool.capacity,
		ActiveAdapters: adaptersOf(e.running), QueuedAdapters: adaptersOf(e.waiting),
	}
}

func adaptersOf(list []*Sequence) (names []string) {
	for _, s := range list {
		if s.Adapter != "" {
			names = append(names, s.Adapter)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Crash takes all sequences away, as when the process dies: the cache is empty.
func (e *Engine) Crash() (lost []*Sequence) {
	lost = append(slices.Clone(e.running), e.waiting...)
	e.pool = newPool(e.pool.capacity, e.profile.HostTokens/e.size)
	e.adapters = newAdapters(e.profile.AdapterSlots)
	e.waiting, e.running = nil, nil
	return lost
}
