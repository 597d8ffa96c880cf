package affinity

import (
	"sync"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// shard is one part of the table: entries in a list from the newest placement to
// the oldest, by number, so that the collector has nothing to follow.
type shard struct {
	mu             sync.Mutex
	at             map[Key]int32
	entries        []entry
	newest, oldest int32
	free           []int32 // entries that Forget emptied
}

type entry struct {
	key          Key
	newer, older int32
	pods         [numHolders]holder // the latest first, then zeros
}

const none = -1

func (s *shard) get(k Key) (pods [numHolders]holder, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.at[k]
	if ok {
		pods = s.entries[i].pods
	}
	return pods, ok
}

func (s *shard) place(k Key, h holder, limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.at[k]
	switch {
	case ok:
		s.unlink(i)
	default:
		i = s.take(limit)
		s.entries[i] = entry{key: k}
		s.at[k] = i
	}
	s.link(i)
	s.entries[i].put(h)
}

// take finds room for an entry: a free one, a new one, or the oldest's.
func (s *shard) take(limit int) int32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i
	}
	if len(s.entries) < limit {
		s.entries = append(s.entries, entry{})
		return int32(len(s.entries) - 1)
	}
	i := s.oldest
	s.unlink(i)
	delete(s.at, s.entries[i].key)
	return i
}

func (s *shard) link(i int32) {
	e := &s.entries[i]
	e.newer, e.older = none, s.newest
	if s.newest != none {
		s.entries[s.newest].newer = i
	} else {
		s.oldest = i
	}
	s.newest = i
}

func (s *shard) unlink(i int32) {
	e := &s.entries[i]
	if e.newer != none {
		s.entries[e.newer].older = e.older
	} else {
		s.newest = e.older
	}
	if e.older != none {
		s.entries[e.older].newer = e.newer
	} else {
		s.oldest = e.newer
	}
}

func (s *shard) forget(id pod.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := s.newest; i != none; {
		e := &s.entries[i]
		older := e.older
		if e.drop(id); e.pods[0] == 0 {
			s.unlink(i)
			delete(s.at, e.key)
			s.free = append(s.free, i)
		}
		i = older
	}
}

func (s *shard) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at)
}

// put makes h the latest holder. Of several lives of one pod the latest counts.
func (e *entry) put(h holder) {
	last := h
	for i, x := range e.pods {
		e.pods[i] = last
		if x == 0 || x.id() == h.id() {
			return
		}
		last = x
	}
}

// drop takes a pod out.
func (e *entry) drop(id pod.ID) {
	n := 0
	for _, h := range e.pods {
		if h != 0 && h.id() != id {
			e.pods[n] = h
			n++
		}
	}
	clear(e.pods[n:])
}
