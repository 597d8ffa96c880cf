package serve

import (
	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
)

// jotted is what waits to be written: a decision or an outcome.
type jotted struct {
	at      int64 // ns since 1970
	decided *noted
	outcome *recording.Outcome
}

// noted is a decision before it is hashed.
type noted struct {
	recording.Decision
	requestID string
	prompt    block.Prompt
	policy    *pick.Policy
	pods      []*pod.Pod
	pools     []int // tokens, 0 = not told
}

// What may wait for the disk: some seconds of a thousand requests per second, and of
// their prompts as many ids as sixteen of a million tokens.
const (
	maxJotted      = 8 << 10
	maxJottedBytes = 64 << 20
)

// decided hands a decision over. The card is still its caller's alone.
func (d *decisions) decided(c *decided, q *pick.Query, no *refusal) *noting {
	if d == nil {
		return nil
	}
	card := &c.card
	n := &noted{
		Decision: recording.Decision{
			N: d.serial.Add(1), PickID: c.pickID, Model: card.Base, Adapter: card.Adapter, Tokens: card.Tokens, Exact: card.Exact,
			Unmatched: string(card.Unmatched), Picked: -1, Tie: card.Tie.Used,
		},
		requestID: card.RequestID, prompt: q.Prompt, policy: card.Policy(),
		pods: make([]*pod.Pod, len(card.Rows)), pools: make([]int, len(card.Rows)),
	}
	if w := card.WinnerRow(); w != nil && no == nil {
		n.Picked, n.Cached = card.Winner, w.Cached
	}
	if no != nil {
		n.Status = no.Status
	}
	for i := range card.Rows {
		r := &card.Rows[i]
		n.pods[i] = r.Pod
		if r.PoolHow == pick.FromPod {
			n.pools[i] = int(r.PoolSize)
		}
	}
	n.Scores = card.Unweighted(make(recording.Scores, 0, len(card.Rows)*len(pick.TermNames())))
	at := wall(card.Now).UnixNano()
	d.put(jotted{at: at, decided: n})
	return &noting{to: d, n: n.N, at: card.Now}
}

// put never waits.
func (d *decisions) put(j jotted) {
	size := j.bytes()
	if d.waiting.Add(size) <= maxJottedBytes {
		select {
		case d.queue <- j:
			return
		default:
		}
	}
	d.waiting.Add(-size)
	d.drop()
}

func (j *jotted) bytes() int64 {
	if j.decided == nil {
		return 0
	}
	return 4 * int64(len(j.decided.prompt.Tokens))
}

func (d *decisions) drop() {
	d.dropped.Add(1)
	d.met.unrecorded.Add(1)
}
