package feed

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/testdata"
)

// TestFeedCaptures publishes what real engines published by real libzmq: before
// each request the events that the engine had published by then. What the engine
// reported as cached must be what the index behind the sockets predicts, for a
// subscriber from the start and for one that joins halfway.
func TestFeedCaptures(t *testing.T) {
	left := map[string]bool{
		"vllm-0.32.0/llama": true, "vllm-0.32.0/qwen3": true, "vllm-0.32.0/dialin": true,
		"vllm-0.23.0/llama": true, "sglang-0.5.23/llama": true,
	}
	for _, c := range testdata.Captures(t) {
		if !c.Own || c.Ranks > 1 { // one publisher each; those from elsewhere are the index's
			continue
		}
		delete(left, c.Name)
		t.Run(c.Name, func(t *testing.T) {
			whole := overLibzmq(t, c, 0)
			half := overLibzmq(t, c, len(c.Messages)/2)
			if half == 0 || half >= whole {
				t.Errorf("%d requests compared, %d of them behind a replay", whole, half)
			}
			t.Logf("%d requests compared, %d behind a replay", whole, half)
		})
	}
	if len(left) > 0 {
		t.Errorf("no capture of %v", left)
	}
}

// The engine with two data-parallel ranks: a publisher and a cache of each, and
// each request that names its rank is predicted from that rank's events alone.
func TestFeedCaptureOfRanks(t *testing.T) {
	var c *testdata.Capture
	for _, x := range testdata.Captures(t) {
		if x.Own && x.Ranks > 1 {
			c = x
		}
	}
	if c == nil {
		t.Fatal("there is no capture of several ranks")
	}
	t.Run("KV-51 "+c.Name, func(t *testing.T) {
		f, fleet := startFeed(t, Options{})
		spec := pod.Spec{Name: "p", Address: "127.0.0.1:1", Model: "tiny", Engine: pod.EngineVLLM, Ranks: c.Ranks}
		var pubs []*libzmq
		for range c.Ranks {
			replay := free(t)
			p := startLibzmq(t, "bind", "127.0.0.1:*", "replay", replay)
			pubs = append(pubs, p)
			spec.Events = append(spec.Events, "tcp://"+strings.TrimPrefix(p.do("addr"), "addr "))
			spec.Replay = append(spec.Replay, "tcp://"+replay)
		}
		f.Apply([]pod.Spec{spec})
		members := fleet.Pods.Snapshot().ByName("p").Members
		for _, p := range pubs {
			p.do("subscribed")
		}
		sent, compared, other := 0, 0, 0
		last := make([]int, c.Ranks) // index of the last message of each rank, +1
		for i := range c.Requests {
			r := &c.Requests[i]
			for rank, p := range pubs {
				p.do("frames %s %d %d %d", filepath.Join(c.Dir, "frames.jsonl"), sent, r.Before, rank)
			}
			for ; sent < r.Before; sent++ {
				last[c.Messages[sent].Rank] = sent + 1
			}
			rank, named := c.Rank(r)
			if !r.Comparable() || !named {
				continue
			}
			for k, n := range last {
				if n > 0 {
					waitApplied(t, f, fleet, members[k], c.Messages[n-1].Seq)
				}
			}
			compared++
			q := &block.Prompt{Model: spec.Model, Salt: r.Body.Salt, Tokens: r.Tokens, Cut: -1}
			m := members[rank]
			if got := r.Usable(held(fleet, m, q), fleet.Index.BlockSize(m)); got != r.Cached {
				t.Errorf("request %s on rank %d: predicted %d of %d tokens, the engine had %d", r.ID, rank, got, len(r.Tokens), r.Cached)
			}
			if held(fleet, members[1-rank], q) != held(fleet, m, q) {
				other++
			}
		}
		for _, n := range f.Counters() {
			if n.RankMismatch > 0 || n.Lost > 0 || n.Batches == 0 {
				t.Errorf("%+v", n)
			}
		}
		if compared < 4 || other == 0 {
			t.Errorf("%d requests compared, in %d of them the ranks differ", compared, other)
		}
		t.Logf("%d requests compared, in %d of them the ranks differ", compared, other)
	})
}

// overLibzmq runs a capture of one rank, of which `before` messages are published
// before the feed knows the pod, and returns how many requests it compared.
func overLibzmq(t *testing.T, c *testdata.Capture, before int) (compared int) {
	f, fleet := startFeed(t, Options{})
	p, spec := publisherOf(t, c)
	publish := func(from, to int) { p.do("frames %s %d %d", filepath.Join(c.Dir, "frames.jsonl"), from, to) }
	publish(0, before)
	f.Apply([]pod.Spec{spec})
	m := fleet.Pods.Snapshot().ByName("p").Members[0]
	p.do("subscribed")

	sent := before
	for i := range c.Requests {
		r := &c.Requests[i]
		if r.Before < before {
			continue
		}
		if r.Before > sent {
			publish(sent, r.Before)
			sent = r.Before
		}
		if !r.Comparable() {
			continue
		}
		if sent > 0 {
			waitApplied(t, f, fleet, m, c.Messages[sent-1].Seq)
		}
		compared++
		q := &block.Prompt{Model: spec.Model, Salt: r.Body.Salt, Tokens: r.Tokens, Cut: -1}
		for _, x := range r.Media(t) {
			q.Items = append(q.Items, block.Item{ID: block.IdentifyItem(x.Name), Offset: x.Offset, Length: x.Length})
		}
		if got := r.Usable(held(fleet, m, q), fleet.Index.BlockSize(m)); got != r.Cached {
			t.Errorf("request %s: predicted %d of %d tokens, the engine had %d", r.ID, got, len(r.Tokens), r.Cached)
		}
	}
	n := f.Counters()[0]
	if n.Undecodable > 0 || len(n.Skips) > 0 || len(n.WrongShape) > 0 || n.RankMismatch > 0 || n.Lost > 0 || n.Replays["filled"] == 0 {
		t.Errorf("%d messages before: %+v", before, n)
	}
	// SGLang's capture begins behind three messages that nobody has any more.
	if before == 0 && n.Missed > c.Messages[0].Seq {
		t.Errorf("%d messages were missed live, the first has number %d", n.Missed, c.Messages[0].Seq)
	}
	return compared
}

// publisherOf starts a publisher like the capture's engine and names it as a pod:
// dial-in where the engine dialled, without topics in replies where it had none.
func publisherOf(t *testing.T, c *testdata.Capture) (*libzmq, pod.Spec) {
	spec := pod.Spec{Name: "p", Address: "127.0.0.1:1", Model: "tiny", Engine: pod.EngineVLLM}
	if c.SGLang {
		spec.Engine = pod.EngineSGLang
	}
	replay := free(t)
	spec.Replay = []string{"tcp://" + replay}
	args := []string{"bind", "127.0.0.1:*", "replay", replay}
	switch c.Name {
	case "vllm-0.32.0/dialin":
		at := free(t)
		spec.Bind = "tcp://" + at
		args[0], args[1] = "connect", at
		return startLibzmq(t, args...), spec
	case "vllm-0.23.0/llama":
		args = append(args, "topic", "no")
	}
	p := startLibzmq(t, args...)
	spec.Events = []string{"tcp://" + strings.TrimPrefix(p.do("addr"), "addr ")}
	return p, spec
}

// waitApplied waits until the index has every message up to number seq. That 0 is
// the number before any message too, so an event is asked for besides.
func waitApplied(t *testing.T, f *Feed, fleet *view.Fleet, m pod.Member, seq uint64) {
	t.Helper()
	eventually(t, fmt.Sprintf("message %d applied", seq), func() bool {
		s := fleet.Sync.Get(m)
		n := countersOf(f, m)
		return s.LastSeq == seq && n.Stored+n.Removed+n.Cleared > 0 && (s.State == view.Live || s.State == view.Partial)
	}, func() string { return fmt.Sprintf("%+v, %+v", fleet.Sync.Get(m), f.Counters()) })
}

func countersOf(f *Feed, m pod.Member) Counters {
	for _, c := range f.Counters() {
		if c.Member == m {
			return c
		}
	}
	return Counters{}
}
