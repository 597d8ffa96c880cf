package parity_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/parity"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/testdata"
)

// TestCaptures plays what engines announced beside the requests that caused it. With
// the ids that the engine used, no request may differ or be unseen, whatever was
// evicted, reset, preempted, salted or sent at once; other ids must be found out.
func TestCaptures(t *testing.T) {
	makings := []struct {
		name string
		make func([]uint32) []uint32
		miss bool // must be found
	}{
		{"the engine's", func(ids []uint32) []uint32 { return ids }, false},
		{"one id differs", func(ids []uint32) []uint32 {
			ids = slices.Clone(ids)
			ids[len(ids)/2]++
			return ids
		}, true},
		{"a second BOS", func(ids []uint32) []uint32 { return slices.Concat(ids[:1], ids) }, true},
		{"no BOS", func(ids []uint32) []uint32 { return ids[1:] }, true},
		{"one id less in the middle", func(ids []uint32) []uint32 { return slices.Delete(slices.Clone(ids), len(ids)/2, len(ids)/2+1) }, true},
		{"another vocabulary", func(ids []uint32) []uint32 {
			ids = slices.Clone(ids)
			for i := range ids {
				ids[i] += 1 << 20
			}
			return ids
		}, true},
	}
	for _, c := range testdata.Captures(t) {
		for _, m := range makings {
			t.Run(c.Name+"/"+m.name, func(t *testing.T) {
				p := newPlay(c)
				p.run(t, m.make)
				t.Logf("%s: %v", m.name, p.counts())
				if !m.miss && (p.tally.Total[parity.Differs]+p.tally.Total[parity.Unseen] > 0 || p.tally.Total[parity.Equal] == 0) {
					t.Errorf("equal ids: %v", p.counts())
				}
				differ, right, blocks, wrong := p.positions()
				t.Logf("%d differ, the position is told of %d, the block alone of %d, and another place of %d", differ, right, blocks, wrong)
				// Of chats with images so little is known natively that three say nothing.
				if wrong > 2 || differ > 3 && (5*right < 2*differ || 2*(right+blocks) < differ) {
					t.Errorf("%d differ, the position is told of %d, the block alone of %d, and another place of %d", differ, right, blocks, wrong)
				}
				if n := p.watched(); m.miss && n >= 16 && !p.found {
					t.Errorf("other ids are not found out by %d requests: %v", n, p.counts())
				}
			})
		}
	}
}

// play is a capture on its way through an index and a watch.
type play struct {
	*testdata.Capture
	ix      *index.Index
	watch   *parity.Watch
	dec     event.Decoder
	batch   event.Batch
	out     index.Result
	seq     []int64
	tally   parity.Tally
	running []running
	placed  []running

	found bool // the tally failed at some time
}

type running struct {
	x    *parity.Watched
	end  float64
	part int // where its ids part from the engine's
	size int // of its blocks
}

// positions counts the requests that differ, of these those whose position is told, those
// of which the block alone is, and those of which either is told wrong.
func (p *play) positions() (differ, right, blocks, wrong int) {
	for _, r := range p.placed {
		if r.x == nil || r.x.Verdict != parity.Differs {
			continue
		}
		differ++
		switch {
		case r.x.At == r.part:
			right++
		case r.x.At < 0 && r.x.Block == r.part/r.size:
			blocks++
		case r.x.Block >= 0:
			wrong++
		}
	}
	return differ, right, blocks, wrong
}

func newPlay(c *testdata.Capture) *play {
	p := &play{Capture: c, ix: index.New(index.Options{Seed: 1, TTL: -1}), watch: parity.NewWatch(2)}
	engine := pod.EngineVLLM
	if c.SGLang {
		engine = pod.EngineSGLang
	}
	for m := range c.Ranks {
		p.ix.Register(pod.Member(m), index.Owner{Model: "base", Engine: engine, Blocks: c.Blocks})
		p.seq = append(p.seq, -1)
	}
	return p
}

func (p *play) counts() string {
	s := ""
	for v, n := range p.tally.Total {
		s += fmt.Sprintf("%v %d ", parity.Verdict(v), n)
	}
	return s
}

// watched is how many requests were.
func (p *play) watched() (n uint64) {
	for _, x := range p.tally.Total {
		n += x
	}
	return n
}

func ns(s float64) int64 { return int64(s * 1e9) }

func (p *play) run(t *testing.T, made func([]uint32) []uint32) {
	applied := 0
	for i := range p.Requests {
		q := &p.Requests[i]
		for ; applied < min(q.Before, len(p.Messages)); applied++ {
			p.apply(t, applied)
		}
		p.pass(q.At)
		var ids []uint32
		if rank, ok := p.Rank(q); ok && q.Status == 200 && json.Unmarshal(q.TokenIDs, &ids) == nil && len(ids) > 1 {
			if images := q.Media(t); len(images) > 0 {
				ids = ids[:images[0].Offset] // all that is known natively
			}
			p.place(q, pod.Member(rank), made(ids), ids)
		}
	}
	for ; applied < len(p.Messages); applied++ {
		p.apply(t, applied)
	}
	p.pass(p.Messages[applied-1].At + 3600)
}

func (p *play) place(q *testdata.Request, m pod.Member, ids, theirs []uint32) {
	prompt := block.Prompt{Model: "base", Salt: q.Body.Salt, Tokens: ids, Cut: -1}
	if q.Body.Model == "sql" || q.Body.Model == "legal" {
		prompt.LoRA = q.Body.Model
	}
	p.ix.Lookup(&prompt, &p.out)
	held, known := 0, 0
	for _, x := range p.out.Matches {
		if x.Member == m {
			held, known = int(x.Depth), int(x.Announced)
		}
	}
	x := p.watch.Place(&parity.Routed{Model: "base", Member: m, Tokens: ids, Size: p.ix.ExpectedSize(m), Held: held, Known: known}, ns(q.At))
	r := running{x, q.End, 0, p.ix.ExpectedSize(m)}
	for r.part < min(len(ids), len(theirs)) && ids[r.part] == theirs[r.part] {
		r.part++
	}
	p.running, p.placed = append(p.running, r), append(p.placed, r)
	p.ix.Expect(m, &prompt).Expire(ns(q.End + 2))
}

// pass lets time go by until at.
func (p *play) pass(at float64) {
	p.running = slices.DeleteFunc(p.running, func(r running) bool {
		if r.end > at {
			return false
		}
		r.x.End(true, ns(r.end))
		return true
	})
	p.ix.Sweep(ns(at))
	for _, j := range p.watch.Sweep(ns(at), func(pod.Member, uint64) bool { return true }) {
		p.tally.Add(j)
		p.found = p.found || p.tally.Failed()
	}
}

func (p *play) apply(t *testing.T, i int) {
	msg := &p.Messages[i]
	p.pass(msg.At)
	m := pod.Member(msg.Rank)
	if int64(msg.Seq) <= p.seq[m] {
		p.ix.Purge(m)
		p.watch.Spoil(m)
	}
	p.seq[m] = int64(msg.Seq)
	if err := p.dec.Decode(msg.Payload, &p.batch); err != nil {
		t.Fatal(err)
	}
	p.ix.ApplyBatch(m, p.batch.Events, ns(msg.At))
	p.watch.Store(m, p.batch.Events)
}
