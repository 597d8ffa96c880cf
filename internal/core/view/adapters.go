package view

import (
	"math"
	"slices"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// Residency says what is known of one adapter on one pod. A page shows the adapters
// in use; an engine keeps those it used before until others displace them, the
// least recently used first (vLLM's cache of max_cpu_loras). So whether it still
// has one follows from how many others were used since, on the pages and by our
// own placements.
type Residency struct {
	InUse bool // a request for it runs or waits on the pod
	Seen  bool // the same process used it before
	Newer int  // other adapters used after it
	Using int  // adapters in use
}

// Residency tells of an adapter on a pod. s is the pod's latest page; nil = none
// that counts, and then what was used before counts neither: nothing tells whether
// the process is still the same.
func (l *Ledger) Residency(p *pod.Pod, adapter string, s *telemetry.Sample) Residency {
	a := l.rows[p.ID].Load()
	if a == nil || a.epoch != p.Epoch {
		return adapters(nil).residency(adapter, s)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.adapters.residency(adapter, s)
}

// maxAdapters bounds a pod's history of placements.
const maxAdapters = 128

// adapters are what requests of ours asked for on one pod. The account's lock
// guards it.
type adapters []adapterUse

type adapterUse struct {
	name  string
	users int   // requests in flight
	used  int64 // ns: when the last one ended that was answered, 0 = none was
}

// last is the time of the latest use: now, while there are users.
func (u *adapterUse) last() int64 {
	if u.users > 0 {
		return math.MaxInt64
	}
	return u.used
}

func (a adapters) at(name string) int {
	return slices.IndexFunc(a, func(u adapterUse) bool { return u.name == name })
}

// enter counts a request that was placed. A full list forgets the least recently
// used.
func (a *adapters) enter(name string) {
	if name == "" {
		return
	}
	i := a.at(name)
	if i < 0 && len(*a) < maxAdapters {
		*a, i = append(*a, adapterUse{}), len(*a)
	} else if i < 0 {
		i = 0
		for j := range *a {
			if (*a)[j].last() < (*a)[i].last() {
				i = j
			}
		}
		(*a)[i] = adapterUse{}
	}
	(*a)[i].name = name
	(*a)[i].users++
}

// leave counts a request that is over or moved. One that was not answered has
// loaded nothing that is known of.
func (a *adapters) leave(name string, answered bool, now int64) {
	i := a.at(name)
	if i < 0 || (*a)[i].users == 0 { // forgotten since
		return
	}
	u := &(*a)[i]
	if u.users--; answered {
		u.used = now
	}
	if u.last() == 0 {
		*a = slices.Delete(*a, i, i+1)
	}
}

func (a adapters) residency(name string, s *telemetry.Sample) (x Residency) {
	since := int64(math.MaxInt64) // what was used earlier is not known to be there
	if s == nil {
		s = &telemetry.Sample{}
	} else if since = s.Since; since == 0 {
		since = s.At
	}
	last, place, i := int64(math.MinInt64), -1, 0
	for n, at := range s.Adapters {
		if n == name {
			last, place = at, i
		}
		if s.LoRA.Active(n) {
			x.Using++
		}
		i++
	}
	for i := range a {
		if a[i].users > 0 && !s.LoRA.Active(a[i].name) {
			x.Using++
		}
		if used := a[i].last(); a[i].name == name && used >= since && used > last {
			last, place = used, -1
		}
	}
	x.InUse = last == math.MaxInt64 || s.LoRA.Active(name)
	if x.Seen = place >= 0 || last >= since; x.Seen {
		x.Newer = a.newer(name, last, place, since, s)
	}
	return x
}

// newer counts the adapters used after one that was used last at a time, which is
// its place on the pages' list where that knows it best.
func (a adapters) newer(name string, last int64, place int, since int64, s *telemetry.Sample) (n int) {
	after := func(u *adapterUse) bool { return u.name != name && u.last() >= since && u.last() > last }
	for i := range a {
		if after(&a[i]) {
			n++
		}
	}
	i := 0
	for other, at := range s.Adapters {
		if j := a.at(other); other != name && (at > last || i < place) && (j < 0 || !after(&a[j])) {
			n++
		}
		i++
	}
	return n
}
