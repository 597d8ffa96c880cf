package pick

import (
	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/view"
)

// An engine makes a request of its own of each prompt of a request, all on the pod that
// got it. So each is matched by itself, and what they find is added up. A beginning that
// two of them share and nobody holds counts as computed twice: the engine may start both
// before the first is in its cache.

// several is what a request of more than one prompt has beside their sum.
type several struct {
	prompts int // at least 1
	longest int // tokens, of exact ids
}

func count(q *Query) (tokens int, s several) {
	tokens = len(q.Prompt.Tokens)
	s = several{1 + len(q.Further), tokens}
	for i := range q.Further {
		n := len(q.Further[i].Tokens)
		tokens, s.longest = tokens+n, max(s.longest, n)
	}
	return tokens, s
}

// each calls f for each of the prompts.
func (q *Query) each(f func(*block.Prompt)) {
	f(&q.Prompt)
	for i := range q.Further {
		f(&q.Further[i])
	}
}

// computedOf is computed of several prompts, as if they were equals in length and in
// what is cached of them: where calibration.quadratic is 0 it is their sum.
func (b *basis) computedOf(u, cached float64) float64 {
	n := float64(b.prompts)
	return n * b.cal.prefill(u/n, cached/n)
}

// held is a cache at a block size.
type held struct {
	member pod.Member
	size   int32
}

// sums adds up what the prompts of a request find.
type sums struct {
	matches []index.Match
	at      map[held]int // in matches
}

// lookup looks all prompts up.
func (s *sums) lookup(v *view.View, q *Query, found *index.Result) []index.Match {
	if s.at == nil {
		s.at = map[held]int{}
	}
	s.matches = s.matches[:0]
	clear(s.at)
	q.each(func(p *block.Prompt) {
		v.Index.Lookup(p, found)
		for i := range found.Matches {
			s.add(found.Matches[i], len(p.Tokens))
		}
	})
	return s.matches
}

// add takes in what one prompt of so many tokens found, without the blocks that an
// engine does not reuse of it: where the cut comes off the sum, the block that holds the
// last token of one prompt would be taken for one of another.
func (s *sums) add(m index.Match, prompt int) {
	cutTo(&m, int32((prompt-1)/int(m.Size)))
	if m.Depth == 0 {
		return
	}
	key := held{m.Member, m.Size}
	i, has := s.at[key]
	if !has {
		s.at[key] = len(s.matches)
		s.matches = append(s.matches, m)
		return
	}
	x := &s.matches[i]
	x.Approximate = x.Approximate || m.Approximate
	x.Beyond, x.Depth, x.Announced = x.Beyond+m.Beyond, x.Depth+m.Depth, x.Announced+m.Announced
	for t := range x.Fastest {
		x.Fastest[t] += m.Fastest[t]
	}
}

// cutTo leaves the first most blocks of a match. The others come off the slowest tier,
// where engines offload the end of a prompt first.
func cutTo(m *index.Match, most int32) {
	m.Depth = min(m.Depth, most)
	for t := event.NumTiers - 1; m.Announced > most; t-- {
		n := min(m.Announced-most, m.Fastest[t])
		m.Fastest[t], m.Announced = m.Fastest[t]-n, m.Announced-n
	}
}
