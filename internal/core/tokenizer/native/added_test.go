package native

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestMatcher holds next against looking at every place for every token.
func TestMatcher(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for range 2000 {
		letters := []string{"a", "b", "<", "｜", "é", "\x00", "字", "\x7f", "c"}[r.IntN(3):]
		word := func(n int) string {
			var b strings.Builder
			for range n {
				b.WriteString(letters[r.IntN(len(letters))])
			}
			return b.String()
		}
		var list []Added
		for id := range uint32(1 + r.IntN(5)) {
			list = append(list, Added{ID: id, Content: word(1 + r.IntN(3))})
		}
		m := newMatcher(list)
		text := word(r.IntN(60))
		from := 0
		if text != "" {
			from = r.IntN(len(text))
		}
		at, want := len(text), ""
		for i := from; i < len(text) && want == ""; i++ {
			for _, a := range list {
				if strings.HasPrefix(text[i:], a.Content) && len(a.Content) > len(want) {
					at, want = i, a.Content
				}
			}
		}
		got, a := m.next(text, from)
		if got != at || (a != nil) != (want != "") || a != nil && a.Content != want {
			t.Fatalf("%+v from %d in %q: %d %v, want %d %q", list, from, text, got, a, at, want)
		}
	}
}
