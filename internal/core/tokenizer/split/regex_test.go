package split

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSearchEnds: a pattern that backtracks without end is given up, by the deadline
// where there is one, and the error quotes nothing of the text. Each pair of letters
// doubles the ways at least: no machine is through them in time.
func TestSearchEnds(t *testing.T) {
	re, err := Compile(`^x|(?:(?:a|ab)(?:b|ba)?)+\d`)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, text string
		deadline   time.Duration // 0 = none
		want       error
		found      int
	}{
		{name: "no deadline", want: errSearch},
		{name: "a far deadline", deadline: time.Hour, want: errSearch},
		{name: "a deadline", deadline: 10 * time.Millisecond, want: context.DeadlineExceeded},
		{name: "a deadline, the second search", text: "x", deadline: 10 * time.Millisecond, want: context.DeadlineExceeded, found: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx := t.Context()
			if tc.deadline > 0 {
				// No timer ends it: what gives up is the search.
				ctx = untimed{ctx, time.Now().Add(tc.deadline)}
			}
			found := 0
			err := re.Matches(ctx, tc.text+strings.Repeat("ab", 100), func(int, int) { found++ })
			if !errors.Is(err, tc.want) || strings.Contains(err.Error(), "abab") || found != tc.found {
				t.Error(err, found)
			}
		})
	}
}

// untimed is a context that has a deadline and does not end by it.
type untimed struct {
	context.Context
	deadline time.Time
}

func (u untimed) Deadline() (time.Time, bool) { return u.deadline, true }

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
