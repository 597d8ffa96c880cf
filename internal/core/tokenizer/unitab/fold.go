package unitab

import (
	"slices"
	"strings"
)

// fold is a character and what it is without regard to case.
type fold struct{ r, to rune }

// Fold returns what a character is without regard to case, as one character.
func Fold(r rune) rune {
	i, ok := slices.BinarySearchFunc(simpleFolds, r, func(f fold, r rune) int { return int(f.r - r) })
	if !ok {
		return r
	}
	return simpleFolds[i].to
}

// WithCases returns the ranges with all that is the same without regard to case, as long
// as that is one character.
func WithCases(in []Range) []Range {
	in = Union(in)
	to := map[rune]bool{} // what members are without regard to case
	for _, f := range simpleFolds {
		if within(in, f.r) || within(in, f.to) {
			to[f.to] = true
		}
	}
	out := slices.Clone(in)
	for _, f := range simpleFolds {
		if to[f.to] {
			out = append(out, Range{f.r, f.r}, Range{f.to, f.to})
		}
	}
	return Union(out)
}

// Several returns a character of the ranges that is several without regard to case,
// and those: of ß they are ss.
func Several(in []Range) (r rune, to string, ok bool) {
	in = Union(in)
	for _, d := range fullFolds {
		if within(in, d.r) {
			return d.r, d.full, true
		}
	}
	return 0, "", false
}

// EndsInSeveral returns an end of folded text that is one other character without
// regard to case.
func EndsInSeveral(folded string) (end string, ok bool) {
	for _, d := range fullFolds {
		if strings.HasSuffix(folded, d.full) {
			return d.full, true
		}
	}
	return "", false
}
