package pick

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// tiedCard is a card of candidates with these totals.
func tiedCard(id string, totals ...float64) *Card {
	c := &Card{RequestID: id, Tie: Tie{Window: 0.001}}
	for i, total := range totals {
		target := fmt.Sprintf("10.0.0.%d:8000", i+1)
		p := &pod.Pod{ID: pod.ID(i), Spec: pod.Spec{Name: target}, Addr: netip.MustParseAddrPort(target), Target: target}
		c.Rows = append(c.Rows, Row{Pod: p, Candidate: true, Total: total})
	}
	return c
}

func bestOf(c *Card) int {
	best := 0
	for i := range c.Rows {
		if c.Rows[i].Total > c.Rows[best].Total {
			best = i
		}
	}
	return best
}

// settle chooses where best has the highest total.
func settle(c *Card, best int) int {
	c.RunnerUp = -1
	c.choose(Scored, best)
	return c.Winner
}

func TestRendezvous(t *testing.T) {
	t.Run("SC-40", func(t *testing.T) {
		for _, want := range []struct {
			id      string
			weights []uint64
			winner  int
		}{
			{"req-0001", []uint64{0xd9a2ea94078b83f9, 0xa5ec505dead9c71c, 0x6af65c294d4c9835, 0xc980ec2d737d8c29}, 0},
			{"req-0002", []uint64{0x5718d15b28e07002, 0x3a77107e26d8014e, 0x21032ca02205b104, 0xa718a07820656efb}, 3},
			{"req-0003", []uint64{0xa8c55f75ff939331, 0x336e0e3a35061d28, 0x6d0d0641792a5992, 0x4434f16863ce79c4}, 0},
		} {
			c := tiedCard(want.id, 0, 0, 0, 0)
			if got := settle(c, 0); got != want.winner {
				t.Errorf("%s: winner %d, want %d", want.id, got, want.winner)
			}
			for i, w := range want.weights {
				if c.Rows[i].Weight != w {
					t.Errorf("%s: weight of pod %d is %016x, want %016x", want.id, i, c.Rows[i].Weight, w)
				}
			}
		}
	})
	t.Run("SC-41", func(t *testing.T) {
		moved, won := 0, make([]int, 4)
		for i := range 2000 {
			id := fmt.Sprintf("request-%d", i)
			all := tiedCard(id, 0, 0, 0, 0)
			first := settle(all, 0)
			if again := settle(tiedCard(id, 0, 0, 0, 0), 2); again != first {
				t.Fatalf("%s: %d, then %d", id, first, again)
			}
			won[first]++
			less := tiedCard(id, 0, 0, 0, 0)
			less.Rows[2].Verdict, less.Rows[2].Candidate = Draining, false
			if second := settle(less, 0); second != first {
				moved++
				if first != 2 {
					t.Fatalf("%s moved from %d, which is still there", id, first)
				}
			}
		}
		for i, n := range won {
			if n < 400 || n > 600 {
				t.Errorf("pod %d won %d of 2000", i, n)
			}
		}
		if moved != won[2] {
			t.Errorf("%d moved, pod 2 had won %d", moved, won[2])
		}
	})
	t.Run("IPv6 keeps its brackets", func(t *testing.T) {
		p := pod.Pod{Addr: netip.MustParseAddrPort("[2001:db8::1]:8000")}
		if got := p.Addr.String(); got != "[2001:db8::1]:8000" {
			t.Errorf("target %s", got)
		}
	})
}

func TestTieWindow(t *testing.T) {
	t.Run("SC-44", func(t *testing.T) {
		// req-0002 would choose the last of four.
		for _, c := range []struct {
			name   string
			totals []float64
			winner int
			size   int
		}{
			{"0.9 ms apart", []float64{0.5, 0.5 - 0.0009}, 0, 2},
			{"1.1 ms apart", []float64{0.5, 0.5 - 0.0011}, 0, 1},
			{"within the window, last one heavier", []float64{0.5, 0, 0, 0.5 - 0.0009}, 3, 2},
			{"outside the window", []float64{0.5, 0, 0, 0.5 - 0.0011}, 0, 1},
			{"the window hangs from the best, not from the next", []float64{0.5, 0, 0.4993, 0.4986}, 0, 2},
		} {
			card := tiedCard("req-0002", c.totals...)
			if got := settle(card, bestOf(card)); got != c.winner || card.Tie.Size != c.size || card.Tie.Used != (c.size > 1) {
				t.Errorf("%s: winner %d, tie %+v; want %d of %d", c.name, got, card.Tie, c.winner, c.size)
			}
		}
		edge := tiedCard("x", 0.5, 0.25)
		edge.Tie.Window = 0.25
		if settle(edge, 0); edge.Tie.Size != 2 {
			t.Error("a pod exactly at the window's edge does not tie")
		}
	})
}
