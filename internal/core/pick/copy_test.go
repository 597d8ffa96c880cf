package pick

import (
	"slices"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// crowd is two pods of which the first holds a prompt's beginning and has n requests
// with it in flight, all answered: nothing waits.
func crowd(t *testing.T, n int, shared []uint32) *fleet {
	t.Helper()
	f := newFleet(t, 2)
	f.prove(f.pod(0))
	f.prove(f.pod(1))
	f.store(0, event.TierGPU, shared, 0, len(shared)/blockSize)
	for i := range n {
		q := f.query(slices.Concat(shared, tokens(100+i, 256)), start)
		c := f.decide(q)
		w := c.Work(q)
		w.Prefill, w.Nominal = 0, 0
		f.Fleet.Place(f.pod(0), w, start).FirstByte(start)
	}
	return f
}

// TestCopyForFollowers: a prefix is copied to an idle pod when the requests in flight
// with it, where the copy is, are so many that those who come next gain its prefill.
func TestCopyForFollowers(t *testing.T) {
	shared := tokens(1, 8192)
	for _, c := range []struct {
		sharers int
		seconds float64
		reason  reason.Code
		winner  string
	}{
		{0, 0, reason.Idle, "pod-0"},
		{1, 0, reason.NotCrowded, "pod-0"}, // the request would make them equal
		{5, 2.5 * 0.01 * 4, "", "pod-0"},
		{9, 4.5 * 0.01 * 8, "", "pod-0"},
		{11, 0.512 * 5.5 / 6.5, "", "pod-0"}, // the followers' shares of 0.512 s
		{20, 0.512 * 10 / 11, "", "pod-1"},
	} {
		f := crowd(t, c.sharers, shared)
		card := f.decide(f.query(slices.Concat(shared, tokens(99, 256)), start))
		holder, other := card.Rows[0], card.Rows[1]
		if got := other.Terms[TermCopy]; !near(got, c.seconds, 1e-9) || winner(card) != c.winner || holder.Terms[TermCopy] != 0 {
			t.Errorf("%d sharers: copy %v s, want %v; winner %s, want %s\n%s", c.sharers, got, c.seconds, winner(card), c.winner, card)
		}
		if got := card.basis.zero(&other, TermCopy); got != c.reason {
			t.Errorf("%d sharers: %q, want %q", c.sharers, got, c.reason)
		}
		// Of as many requests with other prompts nobody follows.
		if x := f.decide(f.query(slices.Concat(tokens(2, 8192), shared), start)); x.Rows[1].Terms[TermCopy] != 0 {
			t.Errorf("%d requests with another prompt:\n%s", c.sharers, x)
		}
	}
}

// TestCopyIsNoBetterThanToHold: whatever it is worth to others, a pod without the
// prefix never comes before an equal one that has it.
func TestCopyIsNoBetterThanToHold(t *testing.T) {
	shared := tokens(1, 4096)
	for _, crowding := range []float64{0, 0.01, 10, large} {
		f := crowd(t, 40, shared)
		f.policy.Crowding = crowding
		q := f.query(slices.Concat(shared, tokens(99, 256)), start)
		without := f.decide(q).Rows[1].Total
		f.store(1, event.TierGPU, shared, 0, len(shared)/blockSize)
		if with := f.decide(q).Rows[1].Total; without >= with {
			t.Errorf("crowding %v: %v s without the prefix, %v s with it", crowding, without, with)
		}
	}
}
