//go:build race

package index

// stepHook, set by a test before anything runs, is called between the steps of a
// publication, where readers and writers may meet. In other builds there are no
// such calls.
var stepHook func(r *run, at stage, n uint32)

func (r *run) step(at stage, n uint32) {
	if stepHook != nil {
		stepHook(r, at, n)
	}
}
