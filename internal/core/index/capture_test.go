package index_test

import (
	"encoding/json"
	"errors"
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
	cases := map[string]string{ // KV-52 is every capture's
		"vllm-0.32.0/llama": "KV-49 ", "vllm-0.32.0/qwen3": "KV-49 ", "vllm-0.32.0/dialin": "KV-49 ", "vllm-0.32.0/reannounce": "KV-49 ",
		"vllm-0.23.0/llama": "KV-49 ", "sglang-0.5.23/llama": "KV-49 ", "vllm-0.32.0/qwen2-vl": "KV-49 ", "vllm-0.32.0/gemma3": "KV-50 ", "vllm-0.32.0/dp2": "KV-51 ",
	}
	for _, c := range testdata.Captures(t) {
		t.Run(cases[c.Name]+"KV-52 "+c.Name, func(t *testing.T) {
			r := newReplayed(t, c)
			expect(t, c, r.check(t))
		})
		delete(cases, c.Name)
	}
	for name, id := range cases {
		t.Errorf("%s: no capture %s", id, name)
	}
}

// tally is how many requests were compared, how many of them full attention
// alone would have promised too much for, and how often the copies of blocks came
// to exceed the engine's pool; expect.json beside a capture states them.
type tally struct {
	Comparable int  `json:"comparable"`
	FullAlone  int  `json:"over_predicted_without_windows"`
	Breached   bool `json:"copies_above_capacity"`
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
	off      *index.Index // knows full attention only
	dec      event.Decoder
	batch    event.Batch
	out      index.Result
	adapters map[string]bool
	seq      []int64 // per rank: that of the last message
	verdicts map[index.Verdict]int
}

func newReplayed(t *testing.T, c *testdata.Capture) *replayed {
	r := &replayed{Capture: c, ix: index.New(index.Options{Seed: 1, TTL: -1}), off: index.New(index.Options{Seed: 1, TTL: -1}), adapters: map[string]bool{}, verdicts: map[index.Verdict]int{}}
	engine := pod.EngineVLLM
	if c.SGLang {
		engine = pod.EngineSGLang
	}
	for m := range c.Ranks {
		o := index.Owner{Model: base, Engine: engine, Blocks: c.Blocks}
		r.ix.Register(pod.Member(m), o)
		r.off.Register(pod.Member(m), o)
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
		r.off.Purge(m)
	}
	r.seq[m] = int64(msg.Seq)
	events := r.decode(t, i)
	if r.batch.Rank >= 0 && r.batch.Rank != msg.Rank {
		t.Fatalf("message %d: rank %d from the socket of rank %d", i, r.batch.Rank, msg.Rank)
	}
	for j := range events {
		e := &events[j]
		r.verdicts[r.ix.Apply(m, e, int64(i)).Verdict]++
		if !e.FullAttention() {
			e.SpecKind = "of no known kind"
		}
		r.off.Apply(m, e, int64(i))
	}
}

func (r *replayed) check(t *testing.T) (got tally) {
	applied, wrong := 0, 0
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
		tokens := r.predict(t, r.ix, pod.Member(rank), q)
		if r.predict(t, r.off, pod.Member(rank), q) > q.Cached {
			got.FullAlone++
		}
		if tokens != q.Cached {
			wrong++
			t.Errorf("request %s: predicted %d of %d tokens, the engine had %d", q.ID, tokens, len(q.Tokens), q.Cached)
		}
	}
	if got.Comparable == 0 {
		t.Fatal("no comparable request")
	}
	t.Logf("%d messages: %v; %d of %d requests predicted exactly", applied, r.verdicts, got.Comparable-wrong, got.Comparable)
	if r.Own && r.verdicts[index.Parked]+r.verdicts[index.OrphanLost] > 0 {
		t.Errorf("orphans, though every message from the engine's start is there")
	}
	for m := range r.Ranks {
		s, _ := r.ix.Member(pod.Member(m))
		got.Breached = got.Breached || s.Breaches > 0
		if s.Inflated || s.Approximate {
			t.Errorf("rank %d: %+v", m, s)
		}
		if off, _ := r.off.Member(pod.Member(m)); off.Approximate != (len(s.Others) > 0) {
			t.Errorf("rank %d, windows of no known kind: approximate is %v", m, off.Approximate)
		}
	}
	return got
}

// predict is what an index says the engine will find cached.
func (r *replayed) predict(t *testing.T, ix *index.Index, m pod.Member, q *testdata.Request) int {
	p := block.Prompt{Model: base, Salt: q.Body.Salt, Tokens: q.Tokens, Cut: -1, Items: itemsOf(t, q)}
	if r.adapters[q.Body.Model] {
		p.LoRA = q.Body.Model
	}
	ix.Lookup(&p, &r.out)
	for _, x := range r.out.Matches {
		if x.Member == m {
			return q.Usable(int(x.Depth*x.Size), int(x.Size))
		}
	}
	return 0
}

// itemsOf are the images of a request.
func itemsOf(t *testing.T, q *testdata.Request) (items []block.Item) {
	for _, m := range q.Media(t) {
		items = append(items, block.Item{ID: block.IdentifyItem(m.Name), Offset: m.Offset, Length: m.Length})
	}
	return items
}
