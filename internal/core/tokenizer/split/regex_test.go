package split

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestSearchEnds: a pattern that backtracks without end is given up, and its error
// quotes nothing of the text.
func TestSearchEnds(t *testing.T) {
	re, err := Compile(`(?:(?:a|ab)(?:b|ba)?)+\d`)
	if err != nil {
		t.Fatal(err)
	}
	// Each pair doubles the ways at least: no machine is through them in time.
	err = re.Matches(t.Context(), strings.Repeat("ab", 100), func(int, int) {})
	if !errors.Is(err, errSearch) || strings.Contains(err.Error(), "abab") {
		t.Error(err)
	}
}

// TestSearchStops: no match is looked for once the context has ended.
func TestSearchStops(t *testing.T) {
	re, err := Compile(`\p{L}`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	found := 0
	err = re.Matches(ctx, "letters", func(int, int) {
		if found++; found == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || found != 3 {
		t.Error(found, err)
	}
}

// TestMatchesAreBytes: borders are those of s, broken UTF-8 included.
func TestMatchesAreBytes(t *testing.T) {
	re, err := Compile(`\p{L}+`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	s := "é \xff的a\xe4\xb8 𝒳y"
	if err := re.Matches(t.Context(), s, func(from, to int) { got = append(got, s[from:to]) }); err != nil {
		t.Fatal(err)
	}
	if want := []string{"é", "的a", "𝒳y"}; !slices.Equal(got, want) {
		t.Errorf("%+q", got)
	}
}

// FuzzCompile: a pattern is read or refused, in both dialects, and finds in a text what
// is in it.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{patternTiktoken, patternKimi, `[]a[^b&&\w]-[:^alpha:]\b-\x{E9}]`, `(?i:k{2}?|[^\p{Lu}])++`, `\b\Z\R$^.`, `(?i)é{,3}`, `[!--]`, `[a&&`, `\p{^l}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		if len(pattern) > 200 {
			return // each class takes a while
		}
		for _, read := range []func(string) (*Regex, error){Compile, CompileRanked} {
			re, err := read(pattern)
			if err != nil {
				continue
			}
			at := 0
			const s = "aß K\n1_"
			if err := re.Matches(t.Context(), s, func(from, to int) {
				if from < at || to < from || to > len(s) {
					t.Fatal(pattern, from, to)
				}
				at = to
			}); err != nil && !errors.Is(err, errSearch) {
				t.Fatal(pattern, err)
			}
		}
	})
}
