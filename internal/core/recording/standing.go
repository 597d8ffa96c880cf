package recording

import (
	"cmp"
	"maps"
	"slices"
)

// Standing keeps what of a stream of records is still true: which pods and streams
// there are, whether each is connected, its state, and what is known of it.
// Whoever comes in later has to be told. The zero value is empty; not for
// concurrent use.
type Standing struct {
	facts  map[fact]stands
	serial uint64
}

type fact struct {
	pod Pod
	of  Type
}

// stands is the latest record of a fact, and when the fact was first told: pods
// keep their order.
type stands struct {
	serial uint64
	record *Record
}

// standing are the types of records that say what stands. Of the notices, ups and
// downs do.
var standing = [...]Type{TypePod, TypeNotice, TypeSpec, TypeState}

// Stands reports whether a record is true until the next of its kind.
func Stands(r *Record) bool {
	if r.Type == TypeNotice {
		return r.Notice.Kind == Up || r.Notice.Kind == Down
	}
	return slices.Contains(standing[:], r.Type)
}

// Take notes a record.
func (s *Standing) Take(r *Record) {
	if r.Pod == nil || !Stands(r) {
		return
	}
	if s.facts == nil {
		s.facts = map[fact]stands{}
	}
	k := fact{*r.Pod, r.Type}
	f, ok := s.facts[k]
	if !ok {
		s.serial++
		f.serial = s.serial
	}
	f.record = r
	s.facts[k] = f
}

// Forget drops what stands of a pod or stream.
func (s *Standing) Forget(p *Pod) {
	for _, t := range standing {
		delete(s.facts, fact{*p, t})
	}
}

// Records lists what stands, in the order in which it was first told.
func (s *Standing) Records() []*Record {
	list := slices.SortedFunc(maps.Values(s.facts), func(a, b stands) int { return cmp.Compare(a.serial, b.serial) })
	out := make([]*Record, len(list))
	for i, f := range list {
		out[i] = f.record
	}
	return out
}
