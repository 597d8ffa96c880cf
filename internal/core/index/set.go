package index

import (
	"math/bits"
	"slices"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// set is an immutable, non-empty set of members. Most stretches have one
// holder, which costs no memory of its own.
type set struct {
	words []uint64 // nil = just one
	one   pod.Member
}

func just(m pod.Member) set { return set{one: m} }

func (s set) has(m pod.Member) bool {
	if s.words == nil {
		return s.one == m
	}
	return int(m/64) < len(s.words) && s.words[m/64]>>(m%64)&1 != 0
}

func (s set) count() (n int) {
	if s.words == nil {
		return 1
	}
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

func (s set) isJust(m pod.Member) bool { return s.words == nil && s.one == m }

// with returns s and m.
func (s set) with(m pod.Member) set {
	if s.has(m) {
		return s
	}
	w := make([]uint64, max(len(s.words), int(m/64)+1, int(s.one/64)+1))
	copy(w, s.words)
	if s.words == nil {
		w[s.one/64] |= 1 << (s.one % 64)
	}
	w[m/64] |= 1 << (m % 64)
	return set{words: w}
}

// without returns s less m; false when nothing is left.
func (s set) without(m pod.Member) (set, bool) {
	if !s.has(m) {
		return s, true
	}
	if s.words == nil {
		return set{}, false
	}
	n, last := 0, pod.Member(0)
	for i, w := range s.words {
		if i == int(m/64) {
			w &^= 1 << (m % 64)
		}
		if w != 0 {
			n += bits.OnesCount64(w)
			last = pod.Member(i*64 + bits.TrailingZeros64(w))
		}
	}
	if n == 1 {
		return just(last), true
	}
	w := slices.Clone(s.words)
	w[m/64] &^= 1 << (m % 64)
	return set{words: w}, true
}

// bitset is a mutable set of members for the stack of a lookup. Its user says
// how many words are in use.
type bitset [pod.MaxMembers / 64]uint64

func (b *bitset) add(m pod.Member) { b[m/64] |= 1 << (m % 64) }

func (b *bitset) or(s set, words int) {
	if s.words == nil {
		if int(s.one/64) < words {
			b.add(s.one)
		}
		return
	}
	for i, w := range s.words[:min(len(s.words), words)] {
		b[i] |= w
	}
}

func (b *bitset) has(m pod.Member) bool { return b[m/64]>>(m%64)&1 != 0 }

// in yields the members of the first words, in order.
func (b *bitset) in(words int) func(yield func(pod.Member) bool) {
	return func(yield func(pod.Member) bool) {
		for i, w := range b[:words] {
			for ; w != 0; w &= w - 1 {
				if !yield(pod.Member(i*64 + bits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}
