package index

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// set is an immutable, non-empty set of members. Most stretches have one
// holder, which costs no memory of its own. Runs have many sets, so it is kept
// small: no slice, but where n words are.
type set struct {
	first *uint64    // nil = just one
	one   pod.Member // meaningful then only
	n     uint8
}

func just(m pod.Member) set { return set{one: m} }

// of makes a set of bits.
func of(words []uint64) set { return set{first: unsafe.SliceData(words), n: uint8(len(words))} }

// words are the bits; none for a set of just one.
func (s set) words() []uint64 { return unsafe.Slice(s.first, s.n) }

func (s set) has(m pod.Member) bool {
	if s.first == nil {
		return s.one == m
	}
	return m/64 < pod.Member(s.n) && s.words()[m/64]>>(m%64)&1 != 0
}

func (s set) isJust(m pod.Member) bool { return s.first == nil && s.one == m }

func (s set) count() (n int) {
	if s.first == nil {
		return 1
	}
	for _, w := range s.words() {
		n += bits.OnesCount64(w)
	}
	return n
}

// with returns s and m.
func (s set) with(m pod.Member) set {
	if s.has(m) {
		return s
	}
	w := make([]uint64, max(int(s.n), int(m/64)+1, int(s.one/64)+1))
	copy(w, s.words())
	if s.first == nil {
		w[s.one/64] |= 1 << (s.one % 64)
	}
	w[m/64] |= 1 << (m % 64)
	return of(w)
}

// without returns s less m; false when nothing is left.
func (s set) without(m pod.Member) (set, bool) {
	if !s.has(m) {
		return s, true
	}
	if s.first == nil {
		return set{}, false
	}
	n, last := 0, pod.Member(0)
	for i, w := range s.words() {
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
	w := slices.Clone(s.words())
	w[m/64] &^= 1 << (m % 64)
	return of(w), true
}

// bitset is a mutable set of members for the stack of a lookup. Its user says
// how many words are in use.
type bitset [pod.MaxMembers / 64]uint64

func (b *bitset) add(m pod.Member) { b[m/64] |= 1 << (m % 64) }

func (b *bitset) or(s set, words int) {
	if s.first == nil {
		if int(s.one/64) < words {
			b.add(s.one)
		}
		return
	}
	for i, w := range s.words()[:min(int(s.n), words)] {
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
