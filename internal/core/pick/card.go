package pick

import (
	"slices"

	"github.com/eppctl/eppctl/internal/core/affinity"
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
	Tokens    int         // of the prompt, or of all prompts
	Exact     bool        // Tokens counts exact ids; otherwise it is an estimate
	Unmatched reason.Code // why nothing could be matched, "" = it could
	Origin    Origin      // who told the token ids
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

	priority int
	basis    basis
	scratch
}

// scratch is what Decide works with and nobody reads afterwards.
type scratch struct {
	found   index.Result
	sums    sums
	matches []index.Match // of found, or of sums
	deepest []int32       // by row: of matches the one of its deepest rank, plus one; 0 = none
	near    affinity.Result
	key     []byte // tie-break input
	ranks   []int  // of the winner, equally idle
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
	Match Match
	// Near are the prompt's tokens whose bytes were placed here before: an estimate
	// from our own history, of a prompt without ids. No event says so.
	Near int
	// Rank is the data-parallel rank the request is for, -1 = the engine's choice, or
	// a pod of one rank that has nothing. RankWhy says what that costs, "" = nothing.
	Rank     int
	RankWhy  reason.Code
	Cached   int         // H: tokens the engine will not compute again
	Uncached int         // u = prompt - H, at least 1
	Reason   reason.Code // why Cached is 0, "" otherwise
	Cleared  int64       // ns: when the engine lost it, of reason.Cleared; 0 = not known
	Sync     *view.Sync  // never nil: event stream of the matched rank, else of rank 0
	Trust    float64     // factor on affinity: below 1 while events are missing

	// How loaded the pod is.
	Telemetry telemetry.State
	ScrapedAt int64 // ns, 0 = never
	Load      view.Load
	Waiting   *telemetry.Value // as scraped; noValue, never nil, unless it counts
	Assumed   float64          // waiting requests taken for an unknown Waiting
	Foreign   bool             // Waiting shows requests that are not ours
	Alone     bool             // the page shows no more requests than ours, running ones included
	Queue     float64          // Q: seconds until the pod could begin, at nominal speed
	Depth     int              // d: requests before their first token
	Usage     float64          // KV usage, 0..1
	UsageHow  Source
	Device    *telemetry.Device // never nil
	entry     *telemetry.Entry  // never nil: the board's, whose parts the two above may be
	PoolSize  float64           // tokens of the KV pool, 0 = not known
	PoolHow   Source
	PoolShare float64 // φ: share taken by requests in flight
	PoolAdds  float64 // tokens the request would add
	Adapter   AdapterState
	LoRA      view.Residency // of the request's adapter
	Slots     int            // adapters that compute at once on the pod, 0 = not told
	Slow      float64        // k: prefill time on this pod over that on the reference
	Severe    float64        // flat charge of the hardware
	Fetched   [event.NumTiers]int
	Prefill   float64 // T(u, H) in seconds, at nominal speed

	// Terms are the signed seconds, in the order of Terms; Total is their sum in
	// that order.
	Terms [numTerms]float64
	Total float64

	Weight uint64 // rendezvous weight of a tied pod
	Tied   bool

	asleep    bool
	fatal     bool
	silent    bool // nothing answers there
	estimated bool // Usage is the hit/miss heuristic
}

// What a row points to until something is known.
var (
	noSync   view.Sync
	noDevice telemetry.Device
	noValue  telemetry.Value
	noEntry  telemetry.Entry
)

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

// Policy is the one that the card was decided by.
func (c *Card) Policy() *Policy { return c.basis.policy }

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

// Best appends the first n of Order to dst. For the few that a pick is answered with
// it looks at each row once, where to order a thousand rows takes as long as the
// decision.
func (c *Card) Best(n int, dst []int) []int {
	from := len(dst)
	if c.Winner >= 0 && n > 0 {
		dst = append(dst, c.Winner)
	}
	first := len(dst)
	for i := range c.Rows {
		r := &c.Rows[i]
		if !r.Candidate || i == c.Winner {
			continue
		}
		at := len(dst)
		for at > first && r.Total > c.Rows[dst[at-1]].Total {
			at--
		}
		if at-from >= n {
			continue
		}
		if len(dst)-from == n {
			dst = dst[:len(dst)-1]
		}
		dst = slices.Insert(dst, at, i)
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
// query the card was decided for. The ledger learns rates only from single prompts whose
// length is known, on pods whose cache is known and whose queue is ours alone.
func (c *Card) Work(q *Query) view.Work {
	b := &c.basis
	w := view.Work{Tokens: c.Tokens, Rank: -1, Adapter: c.Adapter, Limits: b.policy.Breaker.limits(), Prior: b.prior}
	if len(q.Prompt.Tokens) > 0 {
		w.Prompt, w.Further = &q.Prompt, q.Further
	}
	w.Bytes = q.Bytes
	if r := c.WinnerRow(); r != nil {
		w.Prefill = duration(r.Slow * r.Prefill)
		w.Uncached, w.Rank = r.Uncached, r.Rank
		if c.Exact && b.prompts == 1 && r.Trust == 1 && !r.Foreign && r.RankWhy != reason.RankByEngine && !b.crowded(r) {
			w.Nominal = duration(r.Prefill / b.scale)
		}
	}
	return w
}
