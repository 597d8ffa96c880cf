package index

import (
	"sync"
	"sync/atomic"
)

// sizes lists the block sizes of which a lookup must try each. Readers load the
// list; it changes when the first user of a size comes or the last one goes.
type sizes struct {
	mu    sync.Mutex
	users map[int]int
	list  atomic.Pointer[[]int]
}

func (s *sizes) init() {
	s.users = map[int]int{}
	s.list.Store(new([]int))
}

func (s *sizes) now() []int { return *s.list.Load() }

// use adds a user of a size; 0 is none.
func (s *sizes) use(size int) { s.change(size, 1) }

// leave takes a user away.
func (s *sizes) leave(size int) { s.change(size, -1) }

func (s *sizes) change(size, by int) {
	if size == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.users[size]
	s.users[size] += by
	if after := s.users[size]; before != 0 && after != 0 {
		return
	} else if after == 0 {
		delete(s.users, size)
	}
	list := make([]int, 0, len(s.users))
	for n := range s.users {
		list = append(list, n)
	}
	s.list.Store(&list)
}
