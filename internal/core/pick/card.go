package pick

import (
	"slices"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Card is one decision: a row per pod, and what follows from the rows. It is the
// decision and not a report of it; nothing recomputes a number for display.
//
// The caller owns it and may reuse it: Decide overwrites all of it and allocates
// nothing once its slices have grown. It holds no prompt content. It is not safe
// for concurrent use; Clone one that is to outlive the next Decide.
type Card struct {
	RequestID string
	Now       int64 // ns
	Model     string
	Base      string // that Model means, "" = nobody knows the model
	Adapter   string
	Tokens    int         // of the prompt
	Exact     bool        // Tokens counts exact ids; otherwise it is an estimate
	Unmatched reason.Code // why nothing could be matched, "" = it could
	Epoch     uint64      // of the pod set

	Rows []Row // one per pod, in order of ID

	Outcome Outcome
	// Why is set when the pick is not an ordinary one: no pod, or the best of
	// pods that a filter would leave out.
	Why      reason.Code
	Winner   int // index into Rows, -1 = none
	RunnerUp int // the best of the others, -1 = none
	// Margin is the winner's total minus the runner-up's, in seconds. After a
	// tie it may be negative, never below minus the tie window.
	Margin float64
	Tie    Tie

	basis basis
	scratch
}

// scratch is what Decide works with and nobody reads afterwards.
type scratch struct {
	found index.Result
	rowOf []int32 // by pod.ID; -1 = not in the set
	key   []byte  // tie-break input
}

// Tie says whether chance, made repeatable, decided.
type Tie struct {
	Used   bool
	Window float64 // seconds
	Size   int     // pods within the window of the best, itself included
}

// Outcome is what is to be done with the request.
type Outcome uint8

// The outcomes.
const (
	Picked     Outcome = iota + 1
	NoEndpoint         // no pod can serve it: status 503
	Overloaded         // it may be shed and only load excludes every pod: status 429
)

func (o Outcome) String() string {
	switch o {
	case Picked:
		return "picked"
	case NoEndpoint:
		return "no-endpoint"
	case Overloaded:
		return "overloaded"
	}
	return "undecided"
}

// Row is one pod on the card.
type Row struct {
	Pod *pod.Pod

	// Verdict is the first filter that left the pod out, with the value it
	// compared and the limit; Candidate tells whether the pod could win. A pod
	// that only a soft filter leaves out is a candidate when there is no better.
	Verdict      Verdict
	Value, Limit float64
	Candidate    bool

	// What is cached.
	Match    Match
	Cached   int         // H: tokens the engine will not compute again
	Uncached int         // u = prompt - H, at least 1
	Reason   reason.Code // why Cached is 0, "" otherwise
	Sync     view.Sync   // event stream of the matched rank, else of rank 0
	Trust    float64     // factor on affinity: below 1 while events are missing

	// How loaded the pod is.
	Telemetry telemetry.State
	ScrapedAt int64 // ns, 0 = never
	Load      view.Load
	Waiting   telemetry.Value // as scraped, unknown unless it counts
	Assumed   float64         // waiting requests taken for an unknown Waiting
	Foreign   bool            // Waiting shows requests that are not ours
	Queue     float64         // Q: seconds until the pod could begin, at nominal speed
	Depth     int             // d: requests before their first token
	Usage     float64         // KV usage, 0..1
	UsageHow  Source
	PoolSize  float64 // tokens of the KV pool, 0 = not known
	PoolHow   Source
	PoolShare float64 // φ: share taken by requests in flight
	PoolAdds  float64 // tokens the request would add
	Adapter   AdapterState
	Slow      float64 // k: prefill time on this pod over that on the reference
	Severe    float64 // flat charge of the hardware
	Fetched   [event.NumTiers]int
	Prefill   float64 // T(u, H) in seconds, at nominal speed

	// Terms are the signed seconds, in the order of Terms; Total is their sum in
	// that order.
	Terms [numTerms]float64
	Total float64

	Tied   bool
	Weight uint64 // rendezvous weight of a tied pod

	asleep    bool
	fatal     bool
	silent    bool // nothing answers there
	estimated bool // Usage is the hit/miss heuristic
}

// Source says where a number comes from when the pod itself does not tell it.
type Source uint8

// The sources.
const (
	FromPod     Source = iota // the pod's own page
	FromOthers                // the other pods' pages
	FromDefault               // a constant: nobody tells it
)

func (s Source) String() string { return [...]string{"pod", "others", "default"}[s] }

// WinnerRow returns the chosen pod's row, nil when there is none.
func (c *Card) WinnerRow() *Row {
	if c.Winner < 0 {
		return nil
	}
	return &c.Rows[c.Winner]
}

// Order appends the candidates' indices into Rows to dst: the winner, then the
// others by falling total. It is a total order: equal totals stand in order of
// ID. The ones behind the winner are the fallbacks.
func (c *Card) Order(dst []int) []int {
	from := len(dst)
	for i := range c.Rows {
		if c.Rows[i].Candidate && i != c.Winner {
			dst = append(dst, i)
		}
	}
	slices.SortStableFunc(dst[from:], func(a, b int) int {
		switch x, y := c.Rows[a].Total, c.Rows[b].Total; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	if c.Winner >= 0 {
		dst = slices.Insert(dst, from, c.Winner)
	}
	return dst
}

// Clone returns a copy that shares no memory with c but the immutable pods and
// policy: what a ring of recent decisions keeps.
func (c *Card) Clone() *Card {
	d := *c
	d.scratch = scratch{}
	d.Rows = slices.Clone(c.Rows)
	return &d
}

// Work is what placing the request on the winner means for the ledger. q is the
// query the card was decided for.
func (c *Card) Work(q *Query) view.Work {
	w := view.Work{Tokens: c.Tokens, Rank: -1}
	if len(q.Prompt.Tokens) > 0 {
		w.Prompt = &q.Prompt
	}
	if r := c.WinnerRow(); r != nil {
		w.Prefill = duration(r.Slow * r.Prefill)
		w.Rank = r.Match.Rank
	}
	return w
}
