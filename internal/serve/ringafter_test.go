package serve

import (
	"fmt"
	"testing"
)

// Who follows the ring gets each decision once, and the number of those that left it.
func TestRingAfter(t *testing.T) {
	r := newRing(4)
	put := func(n int) {
		for range n {
			d := r.take()
			d.card.RequestID, d.card.Winner = fmt.Sprint(r.next+1), -1
			r.put(d)
		}
	}
	check := func(seq uint64, limit int, want string) {
		t.Helper()
		list, last, newest, missed := r.after(seq, "", limit)
		if newest != r.next {
			t.Errorf("after %d: newest %d, want %d", seq, newest, r.next)
		}
		got := ""
		for _, p := range list {
			if p.RequestID != fmt.Sprint(p.Seq) {
				t.Errorf("decision %s has number %d", p.RequestID, p.Seq)
			}
			got += p.RequestID + " "
		}
		if got += fmt.Sprintf("last %d missed %d", last, missed); got != want {
			t.Errorf("after %d: %s, want %s", seq, got, want)
		}
	}
	check(0, 10, "last 0 missed 0")
	check(99, 10, "last 0 missed 0") // of another run
	put(3)
	check(0, 10, "1 2 3 last 3 missed 0")
	check(0, 2, "1 2 last 2 missed 0")
	check(2, 10, "3 last 3 missed 0")
	check(3, 10, "last 3 missed 0")
	put(4)
	check(0, 10, "4 5 6 7 last 7 missed 3")
	check(2, 1, "4 last 4 missed 1")
	check(5, 10, "6 7 last 7 missed 0")
	if list, last, _, missed := r.after(0, "nobody", 10); len(list) != 0 || last != 7 || missed != 3 {
		t.Errorf("of nobody: %d, last %d, missed %d", len(list), last, missed)
	}
}
