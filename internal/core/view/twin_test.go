package view

import (
	"math/rand"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/pod"
)

// slow is the ledger as plainly as its definition reads: one list of all that
// was ever placed, every figure computed by walking it. Only the finish time has
// a memory, by its definition.
type slow struct {
	all    []*slowRequest
	finish map[*pod.Pod]int64
}

type slowRequest struct {
	pod             *pod.Pod
	prefill         int64
	tokens          []uint32
	text            string // the tokens, one byte each
	at              int64  // of the placement on its present pod
	stays           []slowStay
	answered, ended bool
}

// slowStay is a time during which a request waited on a pod.
type slowStay struct {
	pod      *pod.Pod
	from, to int64
}

func (s *slow) place(r *slowRequest, now int64) {
	r.at = now
	if !r.answered {
		s.finish[r.pod] = max(s.finish[r.pod], now) + r.prefill
	}
}

func (s *slow) stopWaiting(r *slowRequest, now int64, gone func()) {
	was := !r.answered
	if was {
		r.stays = append(r.stays, slowStay{r.pod, r.at, now})
	}
	p := r.pod
	gone()
	if !was {
		return
	}
	s.finish[p] = now
	for _, x := range s.all {
		if x.pod == p && !x.answered && !x.ended {
			s.finish[p] += x.prefill
		}
	}
}

func (s *slow) load(p *pod.Pod, now, scraped int64) (l Load) {
	prefixes := map[string]bool{}
	for _, r := range s.all {
		for _, w := range r.stays {
			if w.pod == p && w.from <= scraped && w.to > scraped {
				l.AtScrape++
			}
		}
		if r.ended || r.pod != p {
			continue
		}
		l.InFlight++
		full := len(r.tokens) / chunkTokens
		for i := 1; i <= full; i++ {
			prefixes[r.text[:i*chunkTokens]] = true
		}
		l.Held += int64(len(r.tokens) - full*chunkTokens)
		switch {
		case r.answered:
		case r.at > scraped:
			l.Waiting++
			l.Since++
			l.SinceWork += time.Duration(r.prefill)
		default:
			l.Waiting++
			l.AtScrape++
		}
	}
	l.Held += int64(len(prefixes)) * chunkTokens
	l.Queue = time.Duration(max(0, s.finish[p]-now))
	return l
}

// Random lives of requests, cut at random points by every path there is: the
// ledger equals its slow twin at each step and both end empty.
func TestLedgerEqualsTwin(t *testing.T) {
	t.Run("SC-26", func(t *testing.T) {
		for seed := range int64(1000) {
			randomLife(t, rand.New(rand.NewSource(seed)))
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	})
}

func randomLife(t *testing.T, rnd *rand.Rand) {
	l, s := NewLedger(), &slow{finish: map[*pod.Pod]int64{}}
	pods := []*pod.Pod{somePod(0, 1), somePod(1, 2)}
	var live []*Placement
	now := int64(0)
	check := func() {
		p := pods[rnd.Intn(2)]
		scraped := now - int64(rnd.Intn(40))
		if got, want := l.LoadSince(p, now, scraped), s.load(p, now, scraped); got != want {
			t.Fatalf("at %d, scraped %d: ledger %+v, twin %+v", now, scraped, got, want)
		}
	}
	end := func(i int) {
		live[i].End(now)
		if r := s.all[i]; !r.ended {
			s.stopWaiting(r, now, func() { r.ended = true })
		}
	}
	for range 40 {
		now += int64(rnd.Intn(10))
		switch op := rnd.Intn(5); {
		case op <= 1 || len(live) == 0:
			r := &slowRequest{pod: pods[rnd.Intn(2)], prefill: int64(rnd.Intn(50)), tokens: family(rnd)}
			r.text = text(r.tokens)
			prompt := &block.Prompt{Tokens: r.tokens, Cut: -1}
			live = append(live, l.Place(r.pod, Work{
				Prefill: time.Duration(r.prefill), Prompt: prompt, Tokens: len(r.tokens), Rank: -1,
			}, now))
			s.all = append(s.all, r)
			s.place(r, now)
		case op == 2:
			i := rnd.Intn(len(live))
			live[i].FirstByte(now)
			if r := s.all[i]; !r.answered && !r.ended {
				s.stopWaiting(r, now, func() { r.answered = true })
			}
		case op == 3:
			i, to := rnd.Intn(len(live)), pods[rnd.Intn(2)]
			live[i].Move(to, now)
			if r := s.all[i]; !r.ended && r.pod != to {
				s.stopWaiting(r, now, func() { r.pod = to })
				s.place(r, now)
			}
		default:
			end(rnd.Intn(len(live)))
		}
		check()
	}
	for i := range live {
		end(i)
	}
	for _, p := range pods {
		if got := l.LoadSince(p, now+1, now+1); got != (Load{}) {
			t.Fatalf("left on pod %d: %+v", p.ID, got)
		}
	}
}

// family makes prompts that share prefixes of some chunks.
func family(rnd *rand.Rand) []uint32 {
	tokens := make([]uint32, rnd.Intn(4*chunkTokens))
	for i := range tokens {
		tokens[i] = uint32(i / chunkTokens)
	}
	if i := rnd.Intn(6) * chunkTokens; i < len(tokens) {
		tokens[i] = 9
	}
	return tokens
}

func text(tokens []uint32) string {
	b := make([]byte, len(tokens))
	for i, x := range tokens {
		b[i] = byte(x)
	}
	return string(b)
}
