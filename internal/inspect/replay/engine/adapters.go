package engine

import "slices"

// adapters are the LoRA slots. An adapter stays loaded until its slot is needed by
// another, the longest unused first; one in use keeps its slot.
type adapters struct {
	slots  int
	loaded []string // longest unused first
	users  map[string]int
}

func newAdapters(slots int) adapters { return adapters{slots: slots, users: map[string]int{}} }

// next is the first in the queue whose adapter can be had, -1 = none. Without
// slots it is the head.
func (a *adapters) next(queue []*Sequence) int {
	for i, s := range queue {
		if a.fits(s.Adapter) {
			return i
		}
	}
	return -1
}

func (a *adapters) fits(name string) bool {
	return name == "" || a.slots == 0 || slices.Contains(a.loaded, name) || len(a.loaded) < a.slots || a.evictable() >= 0
}

func (a *adapters) evictable() int {
	return slices.IndexFunc(a.loaded, func(n string) bool { return a.users[n] == 0 })
}

// enter gives a sequence its adapter and reports whether that was to be loaded.
func (a *adapters) enter(name string) (load bool) {
	if name == "" {
		return false
	}
	a.users[name]++
	if i := slices.Index(a.loaded, name); i >= 0 {
		a.loaded = append(slices.Delete(a.loaded, i, i+1), name)
		return false
	}
	if a.slots > 0 && len(a.loaded) >= a.slots {
		i := a.evictable()
		a.loaded = slices.Delete(a.loaded, i, i+1)
	}
	a.loaded = append(a.loaded, name)
	return true
}

func (a *adapters) leave(name string) {
	if name == "" {
		return
	}
	if a.users[name]--; a.users[name] == 0 {
		delete(a.users, name)
	}
}
