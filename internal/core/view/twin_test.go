package view

import (
	"math/rand"
	"slices"
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
	judged map[*pod.Pod]int64
	pace   map[*pod.Pod]int
	passed map[*pod.Pod]int
	placed int
}

func newSlow() *slow {
	return &slow{finish: map[*pod.Pod]int64{}, judged: map[*pod.Pod]int64{}, pace: map[*pod.Pod]int{}, passed: map[*pod.Pod]int{}}
}

type slowRequest struct {
	pod             *pod.Pod
	prefill         int64
	tokens          []uint32
	text            string     // the tokens, one byte each
	at              int64      // of the placement on its present pod
	seq             int        // order of the placements
	due             int64      // of an unseen first byte
	stays           []slowStay // before its first byte
	lives           []slowStay // until it ended
	answered, ended bool
}

// slowStay is a time during which a request was on a pod.
type slowStay struct {
	pod      *pod.Pod
	from, to int64
}

func (s *slow) place(r *slowRequest, now int64) {
	r.at = now
	s.placed++
	r.seq = s.placed
	if !r.answered {
		s.finish[r.pod] = max(s.finish[r.pod], now) + r.prefill
	}
}

// stopWaiting is told whether a first byte was seen: only that corrects the finish
// time of a request that was due.
func (s *slow) stopWaiting(r *slowRequest, now int64, seen bool, gone func()) {
	was := !r.answered
	if was {
		r.stays = append(r.stays, slowStay{r.pod, r.at, now})
	}
	p, at, ended := r.pod, r.at, r.ended
	overdue := r.due != 0 && r.due <= now && !seen
	gone()
	if r.pod != p || r.ended != ended {
		r.lives = append(r.lives, slowStay{p, at, now})
	}
	if !was {
		return
	}
	left := now
	for _, x := range s.all {
		if x.pod == p && !x.answered && !x.ended {
			left += x.prefill
		}
	}
	if !overdue {
		s.finish[p] = left
		return
	}
	s.finish[p] = min(s.finish[p], left)
	if !r.answered { // it left, instead of being presumed
		s.passed[p]++
	}
}

// presume goes through the pod's waiting requests by age: the scrape shows the
// youngest waiting and so many running; the oldest that were due are answered.
func (s *slow) presume(p *pod.Pod, x Scrape, now int64) {
	at := now
	if x.At != 0 {
		if x.At <= s.judged[p] {
			return
		}
		at, s.judged[p] = x.At, x.At
	}
	var old []*slowRequest
	running := 0
	for _, r := range s.all {
		switch {
		case r.pod != p || r.ended:
		case r.answered:
			running++
		case r.at <= at:
			old = append(old, r)
		}
	}
	slices.SortFunc(old, func(a, b *slowRequest) int { return a.seq - b.seq })
	front := old[:max(0, len(old)-x.Waiting)]
	late := int64(0)
	for _, r := range old[len(front):] {
		if r.due != 0 && r.due <= at {
			late += r.prefill
		}
	}
	if late > 0 {
		s.finish[p] = max(s.finish[p], now+late)
	}
	confirmed := 0
	for _, r := range front {
		if r.due == 0 || r.due > at || x.At != 0 && x.Running >= 0 && confirmed >= x.Running-running {
			continue
		}
		confirmed++
		s.stopWaiting(r, now, false, func() { r.answered = true })
	}
	if x.At != 0 {
		s.pace[p], s.passed[p] = s.passed[p]+confirmed, 0
	}
}

func (s *slow) load(p *pod.Pod, now, scraped int64) (l Load) {
	prefixes := map[string]bool{}
	due := 0
	for _, r := range s.all {
		for _, w := range r.stays {
			if w.pod == p && w.from <= scraped && w.to > scraped {
				l.AtScrape++
			}
		}
		for _, w := range r.lives {
			if w.pod == p && w.from <= scraped && w.to > scraped {
				l.PlacedAtScrape++
			}
		}
		if r.ended || r.pod != p {
			continue
		}
		l.InFlight++
		if r.at <= scraped {
			l.PlacedAtScrape++
		}
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
			if r.due != 0 && r.due <= now {
				due++
			}
		default:
			l.Waiting++
			l.AtScrape++
		}
	}
	l.Waiting -= min(due, s.pace[p])
	l.Depth = l.Waiting // of the only rank
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
	l, s := NewLedger(), newSlow()
	pods := []*pod.Pod{somePod(0, 1), somePod(1, 2)}
	var live []*Placement
	now := int64(0)
	check := func() {
		p := pods[rnd.Intn(2)]
		scraped := now - int64(rnd.Intn(40))
		got, want := l.LoadSince(p, now, scraped), s.load(p, now, scraped)
		got.Circuit = Circuit{} // not the twin's
		if got != want {
			t.Fatalf("at %d, scraped %d: ledger %+v, twin %+v", now, scraped, got, want)
		}
	}
	end := func(i int) {
		live[i].End(now)
		if r := s.all[i]; !r.ended {
			s.stopWaiting(r, now, false, func() { r.ended = true })
		}
	}
	for range 40 {
		now += int64(rnd.Intn(10))
		switch op := rnd.Intn(7); {
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
				s.stopWaiting(r, now, true, func() { r.answered = true })
			}
		case op == 3:
			i, to := rnd.Intn(len(live)), pods[rnd.Intn(2)]
			live[i].Move(to, now)
			if r := s.all[i]; !r.ended && r.pod != to {
				s.stopWaiting(r, now, false, func() { r.pod = to })
				s.place(r, now)
			}
		case op == 4:
			i, due := rnd.Intn(len(live)), now+int64(rnd.Intn(30))
			live[i].Unseen(due)
			s.all[i].due = due
		case op == 5:
			p := pods[rnd.Intn(2)]
			x := Scrape{At: now - int64(rnd.Intn(20)), Waiting: rnd.Intn(4), Running: rnd.Intn(5) - 1}
			if rnd.Intn(4) == 0 {
				x = Scrape{}
			}
			l.Presume(p, x, now)
			s.presume(p, x, now)
		default:
			end(rnd.Intn(len(live)))
		}
		check()
	}
	for i := range live {
		end(i)
	}
	for _, p := range pods {
		got := l.LoadSince(p, now+1, now+1)
		got.Circuit = Circuit{}
		if got != (Load{}) {
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
