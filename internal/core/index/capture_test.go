package index_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/testdata"
)

// TestCaptures holds the index against real engines: the events they published
// go in, and for every request that events can predict, the cached tokens the
// engine reported must come out.
func TestCaptures(t *testing.T) {
	for _, c := range testdata.Captures(t) {
		t.Run(c.Name, func(t *testing.T) {
			r := newReplayed(t, c)
			expect(t, c, r.check(t))
		})
	}
}

// tally is how many requests were compared and how often the index promised
// more than the engine had; expect.json beside a capture states both.
type tally struct {
	Comparable    int `json:"comparable"`
	OverPredicted int `json:"over_predicted"`
}

// expect keeps a change of the rules of comparison from comparing less and still
// passing. A capture from elsewhere need not state its counts.
func expect(t *testing.T, c *testdata.Capture, got tally) {
	stated, err := os.ReadFile(filepath.Join(c.Dir, "expect.json"))
	if errors.Is(err, fs.ErrNotExist) && !c.Own {
		return
	}
	var want tally
	if err == nil {
		err = json.Unmarshal(stated, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%+v, stated %+v", got, want)
	}
}

// base is the model of every capture's blocks; what the engine calls it does
// not matter.
const base = "base"

// replayed is a capture on its way through an index.
type replayed struct {
	*testdata.Capture
	ix       *index.Index
	dec      event.Decoder
	batch    event.Batch
	out      index.Result
	adapters map[string]bool
	seq      []int64 // per rank: that of the last message
	verdicts map[index.Verdict]int
}

func newReplayed(t *testing.T, c *testdata.Capture) *replayed {
	r := &replayed{Capture: c, ix: index.New(index.Options{Seed: 1, TTL: -1}), adapters: map[string]bool{}, verdicts: map[index.Verdict]int{}}
	engine := pod.EngineVLLM
	if c.SGLang {
		engine = pod.EngineSGLang
	}
	for m := range c.Ranks {
		r.ix.Register(pod.Member(m), index.Owner{Model: base, Engine: engine})
		r.seq = append(r.seq, -1)
	}
	// Adapters are what the events name; a request for one that never stored
	// anything is as cold for the base model as for itself.
	for i := range c.Messages {
		for _, e := range r.decode(t, i) {
			if e.LoRA != "" {
				r.adapters[e.LoRA] = true
			}
		}
	}
	return r
}

func (r *replayed) decode(t *testing.T, i int) []event.Event {
	if err := r.dec.Decode(r.Messages[i].Payload, &r.batch); err != nil || len(r.batch.Skipped) > 0 {
		t.Fatalf("message %d: %v, skipped %+v", i, err, r.batch.Skipped)
	}
	return r.batch.Events
}

// apply takes in message i.
func (r *replayed) apply(t *testing.T, i int) {
	msg := &r.Messages[i]
	m := pod.Member(msg.Rank)
	if int64(msg.Seq) <= r.seq[m] {
		r.ix.Purge(m) // a new life of the engine
	}
	r.seq[m] = int64(msg.Seq)
	events := r.decode(t, i)
	if r.batch.Rank >= 0 && r.batch.Rank != msg.Rank {
		t.Fatalf("message %d: rank %d from the socket of rank %d", i, r.batch.Rank, msg.Rank)
	}
	for j := range events {
		r.verdicts[r.ix.Apply(m, &events[j], int64(i)).Verdict]++
	}
}

func (r *replayed) check(t *testing.T) (got tally) {
	applied, under := 0, 0
	var wrong []string
	for i := range r.Requests {
		q := &r.Requests[i]
		for ; applied < min(q.Before, len(r.Messages)); applied++ {
			r.apply(t, applied)
		}
		rank, ok := r.Rank(q)
		if !ok || !q.Comparable() { // not ok: the engine chose the rank
			continue
		}
		got.Comparable++
		tokens := r.predict(pod.Member(rank), q)
		switch {
		case tokens > q.Cached:
			got.OverPredicted++
		case tokens < q.Cached:
			under++
		default:
			continue
		}
		wrong = append(wrong, fmt.Sprintf("request %s: predicted %d of %d tokens, the engine had %d", q.ID, tokens, len(q.Tokens), q.Cached))
	}
	if got.Comparable == 0 {
		t.Fatal("no comparable request")
	}
	t.Logf("%d messages: %v", applied, r.verdicts)
	if r.Own && r.verdicts[index.Parked]+r.verdicts[index.OrphanLost] > 0 {
		t.Errorf("orphans, though every message from the engine's start is there")
	}
	if r.hybrid() && under == 0 {
		// A block of the full-attention group counts although a sliding window
		// has lost its neighbours: too much may be promised, never too little.
		t.Logf("hybrid cache groups: %d of %d requests are promised too much", got.OverPredicted, got.Comparable)
		return got
	}
	for _, w := range wrong {
		t.Error(w)
	}
	t.Logf("%d of %d requests predicted exactly", got.Comparable-len(wrong), got.Comparable)
	return got
}

// hybrid tells whether the events named cache groups beside full attention.
func (r *replayed) hybrid() bool {
	for m := range r.Ranks {
		if s, _ := r.ix.Member(pod.Member(m)); len(s.Others) > 0 {
			return true
		}
	}
	return false
}

// predict is what the index says the engine will find cached.
func (r *replayed) predict(m pod.Member, q *testdata.Request) int {
	p := block.Prompt{Model: base, Salt: q.Body.Salt, Tokens: q.Tokens, Cut: -1}
	if r.adapters[q.Body.Model] {
		p.LoRA = q.Body.Model
	}
	r.ix.Lookup(&p, &r.out)
	for _, x := range r.out.Matches {
		if x.Member == m {
			return q.Usable(x.Depth*x.Size, x.Size)
		}
	}
	return 0
}
