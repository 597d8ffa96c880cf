package serve

import "context"

// slots bound the requests that compute at one time to the processors there are,
// so that the run queue stays short and response headers, which must not wait,
// find a processor at once. Waiting for an engine takes none.
type slots struct {
	all chan struct{}
	// aside is the one place that explanations have among them: they cost as much
	// as picks, and must not make those wait.
	aside chan struct{}
}

func newSlots(n int) slots { return slots{make(chan struct{}, n), make(chan struct{}, 1)} }

// enter takes a slot, unless ctx ends before there is one.
func (s slots) enter(ctx context.Context, aside bool) bool {
	if aside && !occupy(ctx, s.aside) {
		return false
	}
	if occupy(ctx, s.all) {
		return true
	}
	if aside {
		<-s.aside
	}
	return false
}

// leave gives back what enter took.
func (s slots) leave(aside bool) {
	<-s.all
	if aside {
		<-s.aside
	}
}

// occupy takes a place. A free one counts even when ctx has ended.
func occupy(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
	}
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}
