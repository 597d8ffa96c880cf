package pick

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Explanation turns the card into its wire form. It allocates and is not for the
// request path.
func (c *Card) Explanation() *Explanation {
	b := &c.basis
	x := &Explanation{
		APIVersion: "eppctl/v1", Kind: "Explanation",
		RequestID: c.RequestID,
		At:        time.Unix(0, c.Now).UTC().Format("2006-01-02T15:04:05.000000000Z07:00"),
		Source:    "live", Epoch: c.Epoch,
		Model: c.Model, Base: text(c.Base), LoRA: text(c.Adapter),
		Tokens: c.Tokens, TokensExact: c.Exact, Unmatched: text(string(c.Unmatched)),
		Tokenizer: c.Origin.explain(),
		Unit:      "s", Better: "higher",
		Weights: ExplainedWeights{
			Alpha: b.policy.Alpha, Delay: b.policy.Delay, Pool: b.policy.Pool, Beta: b.policy.Beta, Upsilon: b.policy.Upsilon,
			Breaker: b.policy.Breaker, PrefillRate: b.cal.TokensPerSecond, Configured: b.prior.TokensPerSecond, LearnedSure: b.rate.Sure, ColdPrefillS: b.cold,
		},
		Pods: make([]ExplainedPod, 0, len(c.Rows)),
	}
	if b.prompts > 1 {
		x.Prompts = b.prompts
	} else if size := c.deepestSize(); size > 0 && c.Exact {
		x.BlockSize, x.Blocks, x.TailTokens = ptr(size), ptr(c.Tokens/size), ptr(c.Tokens%size)
	}
	for rank, i := range c.Order(nil) {
		p := c.explainRow(&c.Rows[i])
		p.Rank = ptr(rank + 1)
		x.Pods = append(x.Pods, p)
	}
	for i := range c.Rows {
		if !c.Rows[i].Candidate {
			x.Pods = append(x.Pods, c.explainRow(&c.Rows[i]))
		}
	}
	x.Pick = c.explainPick()
	return x
}

// deepestSize is the block size of the match with the most tokens, 0 when there
// is none.
func (c *Card) deepestSize() (size int) {
	most := 0
	for i := range c.Rows {
		if m := &c.Rows[i].Match; m.held() > most {
			most, size = m.held(), int(m.Size)
		}
	}
	return size
}

func (c *Card) explainRow(r *Row) ExplainedPod {
	p := ExplainedPod{
		Name: r.Pod.Spec.Name, Addr: r.Pod.Target,
		Verdict: "filtered", Filter: r.explainFilter(),
		Match: r.explainMatch(), Reason: text(string(r.Reason)),
		Terms:     []ExplainedTerm{},
		Circuit:   explainCircuit(&r.Load.Circuit),
		Telemetry: r.Telemetry.String(), IndexState: r.Sync.State.String(), Missing: r.Sync.Missing,
		IndexWhy: text(string(r.Sync.Why)), IndexDetail: text(r.Sync.Detail), Lost: r.Sync.Lost,
		Age: ExplainedAge{
			Metrics: age(c.Now, r.ScrapedAt), Events: age(c.Now, r.Sync.LastEvent), IndexState: age(c.Now, r.Sync.Since),
		},
	}
	if r.Reason == reason.Cleared {
		p.Age.Cleared = age(c.Now, r.Cleared)
	}
	if !r.Candidate {
		return p
	}
	p.Verdict = "scored"
	p.Total = number(r.Total)
	for i := range terms {
		p.Terms = append(p.Terms, ExplainedTerm{
			Name: terms[i].name, Seconds: finite(r.Terms[i]), Zero: text(string(c.basis.zero(r, i))), Inputs: terms[i].inputs(&c.basis, r),
		})
	}
	if r.Tied {
		p.TieWeight = ptr(fmt.Sprintf("%016x", r.Weight))
	}
	return p
}

func (r *Row) explainMatch() ExplainedMatch {
	m := &r.Match
	x := ExplainedMatch{
		GPU: int(m.Fastest[event.TierGPU]), Host: int(m.Fastest[event.TierHost]),
		Disk: int(m.Fastest[event.TierDisk]), Remote: int(m.Fastest[event.TierRemote]),
		Expected: m.Expected(), Depth: int(m.Depth), Tokens: r.Cached, Approximate: r.Near > 0,
		RankWhy: text(string(r.RankWhy)),
	}
	if m.Rank >= 0 {
		x.Size, x.Rank = ptr(int(m.Size)), ptr(int(m.Rank))
	}
	return x
}

func (o *Origin) explain() ExplainedTokenizer {
	x := ExplainedTokenizer{Provider: text(o.Provider), Status: text(o.Status), Cut: o.Cut, Tried: []ExplainedAttempt{}}
	for _, t := range o.Tried {
		x.Tried = append(x.Tried, ExplainedAttempt{t.Provider, string(t.Why), text(t.Detail)})
	}
	return x
}

// scrapeError is why the pod's page could not be read at last, behind what it led to.
func (r *Row) scrapeError() string {
	if r.entry == nil || r.entry.Err == "" {
		return ""
	}
	return ": " + r.entry.Err
}

// explainFilter puts the verdict into words and numbers.
func (r *Row) explainFilter() *ExplainedFilter {
	f := &ExplainedFilter{Name: r.Verdict.String()}
	switch r.Verdict {
	case Scored:
		return nil
	case BreakerOpen:
		f.Value, f.Limit, f.Unit = number(r.Value), number(r.Limit), text("requests before first token")
	case TooLong:
		f.Value, f.Limit, f.Unit = number(r.Value), number(r.Limit), text("tokens")
	case NotAnswering:
		f.Value, f.Limit, f.Unit = number(r.Value), number(r.Limit), text("s")
		f.Why = text("no answer to scrapes" + r.scrapeError())
		if r.ScrapedAt == 0 {
			f.Value, f.Why = nil, text("never answered a scrape"+r.scrapeError())
		}
	case Starting:
		f.Value, f.Limit, f.Unit = number(r.Value), number(r.Limit), text("requests before first token")
		f.Why = text(fmt.Sprintf("has answered %d requests", r.Load.Circuit.Answered))
	case Failing:
		f.Value, f.Limit, f.Unit = number(r.Value), number(r.Limit), text("server errors in a row")
		if r.Load.Circuit.Lost > r.Load.Circuit.Errors {
			f.Unit = text("unanswered requests in a row")
		}
		f.Probe = number(seconds(r.Load.Circuit.ProbeIn))
		if f.Why = text("a probe is under way"); *f.Probe > 0 {
			f.Why = text(fmt.Sprintf("next probe in %.1f s", *f.Probe))
		}
	case Asleep:
		f.Why = text("engine sleeps")
	case Fatal:
		f.Why = text("device failed")
	case Unresolved:
		f.Why = text(r.Pod.Spec.Address + " has no address" + r.scrapeError())
	case Draining:
		f.Why = text("draining")
	case NotInSubset:
		f.Why = text("not in the gateway's subset")
	case OtherModel:
		f.Why = text("serves " + r.Pod.Spec.Model)
	case OtherRole:
		f.Why = text("role " + r.Pod.Spec.Role.String())
	case NoAdapter:
		f.Why = text("adapter is not among the pod's")
	case Excluded:
		f.Why = text("supposed not to be there")
	}
	return f
}

func explainCircuit(x *view.Circuit) ExplainedCircuit {
	e := ExplainedCircuit{
		State: x.State.String(), Errors: x.Errors, Lost: x.Lost, Probing: x.Probing, Answered: x.Answered,
	}
	if x.State != view.Closed {
		e.Probe = number(seconds(x.ProbeIn))
	}
	return e
}

func (c *Card) explainPick() ExplainedPick {
	x := ExplainedPick{
		Outcome: c.Outcome.String(), Why: text(string(c.Why)),
		Tie: ExplainedTie{Used: c.Tie.Used, Window: c.Tie.Window, Size: c.Tie.Size, Order: []string{}},
	}
	r := c.WinnerRow()
	if r == nil {
		return x
	}
	x.Pod, x.Addr = ptr(r.Pod.Spec.Name), ptr(r.Pod.Target)
	if r.Rank >= 0 {
		x.Rank = ptr(r.Rank)
	}
	if c.RunnerUp >= 0 {
		x.Margin, x.RunnerUp = number(c.Margin), ptr(c.Rows[c.RunnerUp].Pod.Spec.Name)
	}
	for _, t := range c.tied() {
		x.Tie.Order = append(x.Tie.Order, t.Pod.Spec.Name)
	}
	return x
}

// tied lists the tied rows, heaviest first.
func (c *Card) tied() []*Row {
	var rows []*Row
	for i := range c.Rows {
		if c.Rows[i].Tied {
			rows = append(rows, &c.Rows[i])
		}
	}
	slices.SortFunc(rows, func(a, b *Row) int {
		if heavier(a, b) {
			return -1
		}
		return 1
	})
	return rows
}

func ptr[T any](v T) *T { return &v }

// text is null for "".
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// number is null for what JSON cannot say.
func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func positiveOrNull(v float64) *float64 {
	if v <= 0 {
		return nil
	}
	return number(v)
}

func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// gauge is null for a value nobody told.
func gauge(v telemetry.Value) *float64 {
	if !v.Known {
		return nil
	}
	return number(v.V)
}

// age is in milliseconds; null for a time that never was.
func age(now, at int64) *float64 {
	if at == 0 {
		return nil
	}
	return number(float64(now-at) / 1e6)
}

// gaugeAge is the age of a scraped number, which may be older than the page it stands
// on: the page lacked it since.
func (r *Row) gaugeAge(now int64, v *telemetry.Value) *float64 {
	switch {
	case !v.Known:
		return nil
	case v.At != 0:
		return age(now, v.At)
	}
	return age(now, r.ScrapedAt)
}

// usageAge is null where the usage is not the pod's own.
func (r *Row) usageAge(now int64) *float64 {
	if r.UsageHow != FromPod || r.entry == nil || r.entry.Sample == nil {
		return nil
	}
	return r.gaugeAge(now, &r.entry.Sample.KVUsage)
}
