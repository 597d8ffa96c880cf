package unitab

import (
	"slices"
	"unicode/utf8"
)

// Range is an inclusive range of characters.
type Range struct{ First, Last rune }

// Complement returns the characters that are in none of the ranges. Of the
// surrogates, which no text holds, it makes no difference.
func Complement(in []Range) []Range {
	in = slices.Clone(in)
	slices.SortFunc(in, func(a, b Range) int { return int(a.First - b.First) })
	var out []Range
	next := rune(0)
	for _, r := range in {
		if r.First > next {
			out = append(out, Range{next, r.First - 1})
		}
		next = max(next, r.Last+1)
	}
	if next <= utf8.MaxRune {
		out = append(out, Range{next, utf8.MaxRune})
	}
	return out
}

// Union returns the characters that are in any of the sets, in order.
func Union(sets ...[]Range) []Range { return Complement(Complement(slices.Concat(sets...))) }

// Intersect returns the characters that are in both sets, in order.
func Intersect(a, b []Range) []Range { return Complement(slices.Concat(Complement(a), Complement(b))) }

// within reports whether ranges that are in order hold a character.
func within(ranges []Range, r rune) bool {
	_, ok := slices.BinarySearchFunc(ranges, r, func(x Range, r rune) int {
		switch {
		case x.Last < r:
			return -1
		case x.First > r:
			return 1
		}
		return 0
	})
	return ok
}
