// Package spelling guesses which word was meant by one that nothing is called.
package spelling

import (
	"fmt"
	"strings"
)

const (
	few    = 3  // words are a guess: of more, none is
	listed = 16 // words are read before the sentence they stand in is lost
)

// Among goes on behind a name that is none of names: which was meant, or which there are.
func Among(name string, names []string) string {
	if hint := Guess(name, names); hint != "" {
		return hint
	}
	return List(names)
}

// List says which names there are, the first of many.
func List(names []string) string {
	list := strings.Join(names[:min(len(names), listed)], ", ")
	if n := len(names) - listed; n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	return "there are " + list
}

// Guess asks whether a word that is none of words was meant to be one of them: "did
// you mean a or b?", or "" when nothing is near.
func Guess(word string, words []string) string {
	switch near := Near(word, words); len(near) {
	case 0:
		return ""
	case 1:
		return "did you mean " + near[0] + "?"
	default:
		last := len(near) - 1
		return "did you mean " + strings.Join(near[:last], ", ") + " or " + near[last] + "?"
	}
}

// Near lists what the word was probably meant to be: the words that are the fewest
// slips away, else the few that it is a part of.
func Near(word string, words []string) []string {
	near := nearest(word, words)
	if len(near) == 0 && len(word) > 2 { // a letter or two are a part of almost anything
		for _, w := range words {
			if strings.Contains(strings.ToLower(w), strings.ToLower(word)) {
				near = append(near, w)
			}
		}
	}
	if len(near) > few {
		return nil
	}
	return near
}

// Nearest returns the first of those that are the fewest slips away, or "".
func Nearest(word string, words []string) string {
	if near := nearest(word, words); len(near) > 0 {
		return near[0]
	}
	return ""
}

// nearest lists the words that are the fewest edits away. Two are allowed, one in
// words of up to four letters: "kv" must not become "w" by a guess.
func nearest(word string, words []string) (near []string) {
	most := 2
	if len(word) <= 4 {
		most = 1
	}
	for _, w := range words {
		if len(w) > len(word)+most || len(word) > len(w)+most {
			continue
		}
		d := edits(strings.ToLower(word), strings.ToLower(w))
		if d < most {
			most, near = d, near[:0]
		}
		if d == most {
			near = append(near, w)
		}
	}
	return near
}

// edits counts the insertions, deletions, replacements and swaps of neighbours
// that turn a into b.
func edits(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
