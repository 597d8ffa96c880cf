package recorded

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/core/spelling"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
)

// Source is one file of a recording.
type Source struct {
	Name string
	Open func() (io.ReadCloser, error)
}

// Ask is what is wanted of a recording.
type Ask struct {
	Model        string // "" = the one with the most decisions
	Limit        int    // decisions, 0 = all
	Alternatives []Alternative
}

// Read reads the files of a recording, in order of time.
func Read(sources []Source, ask Ask) (*Recording, error) {
	r := &reader{ask: ask, models: map[string]*model{}, decided: map[key]*Request{}, runs: map[string]bool{}}
	for _, s := range sources {
		if err := r.file(s); err != nil {
			return nil, err
		}
	}
	return r.recording(sources)
}

// reader gathers decisions by model.
type reader struct {
	ask     Ask
	fleet   *recording.Fleet
	policy  *pick.Policy
	rules   []rule
	models  map[string]*model
	decided map[key]*Request // that have no outcome yet
	runs    map[string]bool
	count   int
	blocks  int
	dropped uint64
	weights int
	cut     error
	heard   bool // what engines sent, which another command reads
}

type key struct {
	run string
	n   uint64
}

// model is what is known of one.
type model struct {
	requests []*Request
	pods     int
	refused  int
	fleet    *recording.Fleet
	changed  []Changed
}

func (r *reader) file(s Source) error {
	f, err := s.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	r.fleet = nil
	in, err := recording.NewReader(f)
	for err == nil && !r.full() {
		var rec *recording.Record
		if rec, err = in.Next(); err != nil {
			break
		}
		if err := r.take(rec); err != nil {
			return fmt.Errorf("%s: record before offset %d: %w", s.Name, in.Offset(), err)
		}
	}
	var bad *recording.FormatError
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return nil
	case errors.As(err, &bad) && (errors.Is(err, recording.ErrCut) || errors.Is(err, recording.ErrDamaged)) && in.Offset() > 0:
		r.cut = fmt.Errorf("%s: %w", s.Name, err)
		return nil
	}
	return fmt.Errorf("%s: %w", s.Name, err)
}

func (r *reader) full() bool { return r.ask.Limit > 0 && r.count >= r.ask.Limit }

func (r *reader) take(rec *recording.Record) error {
	switch rec.Type {
	case recording.TypeFleet:
		return r.over(rec.Body)
	case recording.TypeDecision:
		if r.fleet == nil {
			return nil // made without a pod
		}
		d, err := recording.ParseDecision(rec.Body, r.fleet)
		if err != nil {
			return err
		}
		return r.decision(rec.At, d)
	case recording.TypeOutcome:
		o, err := recording.ParseOutcome(rec.Body)
		if err != nil || r.fleet == nil {
			return err
		}
		r.outcome(o)
	case recording.TypeNotice:
		if rec.Notice.Kind == recording.Dropped {
			r.dropped += rec.Notice.Count
		}
	}
	r.heard = r.heard || rec.Pod != nil
	return nil
}

// over takes another fleet, and asks the alternatives about its weights.
func (r *reader) over(body []byte) error {
	f, err := recording.ParseFleet(body)
	if err != nil {
		return err
	}
	pol, err := PolicyOf(f)
	if err != nil {
		return err
	}
	r.rules = r.rules[:0]
	for _, a := range r.ask.Alternatives {
		now, err := a.Make(pol)
		if err != nil {
			return err
		}
		r.rules = append(r.rules, newRule(f, pol, now))
	}
	if r.policy != nil && !sameWeights(r.policy, pol) {
		r.weights++
	}
	r.fleet, r.policy, r.runs[f.Run] = f, pol, true
	return nil
}

func sameWeights(a, b *pick.Policy) bool {
	return !slices.ContainsFunc(pick.WeightKeys(), func(key string) bool {
		x, _ := a.Weight(key)
		y, _ := b.Weight(key)
		return x != y
	})
}

func (r *reader) decision(at int64, d *recording.Decision) error {
	if r.count++; r.count > workload.MaxRequests {
		return fmt.Errorf("more than %d decisions; use --requests", workload.MaxRequests)
	}
	if r.blocks += len(d.Blocks); r.blocks > workload.MaxBlocks {
		return fmt.Errorf("more than %d blocks in all prompts together; use --requests", workload.MaxBlocks)
	}
	m := r.models[d.Model]
	if m == nil {
		m = &model{changed: make([]Changed, len(r.ask.Alternatives))}
		r.models[d.Model] = m
	}
	m.fleet = r.fleet
	if d.Picked < 0 {
		m.refused++
		return nil
	}
	m.pods = max(m.pods, r.candidates(d))
	for i := range r.rules {
		if other, known := r.rules[i].again(d); known {
			m.changed[i].Of++
			m.changed[i].Decisions += other
		}
	}
	x := &Request{
		At: at, Prompt: d.Tokens, Exact: d.Exact, Blocks: d.Blocks, Step: r.fleet.BlockTokens, Adapter: d.Adapter,
		Pod: r.fleet.Pods[d.Picked].Name, Believed: d.Cached, Idle: r.idle(d),
	}
	m.requests = append(m.requests, x)
	r.decided[key{r.fleet.Run, d.N}] = x
	return nil
}

// candidates counts the pods that could have got it: all of them where the terms
// are not there.
func (r *reader) candidates(d *recording.Decision) (n int) {
	terms := len(r.fleet.Terms)
	for i := 0; i*terms < len(d.Scores); i++ {
		if v := d.Scores[i*terms]; v == v {
			n++
		}
	}
	if n == 0 {
		return len(r.fleet.Pods)
	}
	return n
}

// idle reports that the picked pod had nothing to do before the request.
func (r *reader) idle(d *recording.Decision) bool {
	terms := len(r.fleet.Terms)
	if len(d.Scores) < (d.Picked+1)*terms {
		return false
	}
	own := d.Scores[d.Picked*terms : (d.Picked+1)*terms]
	for _, name := range []int{pick.TermQueue, pick.TermConcurrency} {
		if k := slices.Index(r.fleet.Terms, pick.TermNames()[name]); k < 0 || own[k] != 0 {
			return false
		}
	}
	return true
}

func (r *reader) outcome(o *recording.Outcome) {
	k := key{r.fleet.Run, o.N}
	if x := r.decided[k]; x != nil {
		x.outcome = o
		if o.Pod != "" {
			x.Pod = o.Pod
		}
		delete(r.decided, k)
	}
}

// recording is what was gathered of the model asked for.
func (r *reader) recording(sources []Source) (*Recording, error) {
	var names []string
	for _, s := range sources {
		names = append(names, s.Name)
	}
	x := &Recording{
		Name: strings.Join(names, ", "), Model: r.ask.Model, Dropped: r.dropped, Weights: r.weights, Runs: len(r.runs), Cut: r.cut,
	}
	if x.Model == "" {
		x.Model = r.busiest()
	}
	m := r.models[x.Model]
	if len(r.models) == 0 {
		return nil, fmt.Errorf("%s: no decision in it; %s", x.Name, r.known())
	}
	if m == nil || len(m.requests) == 0 {
		return nil, fmt.Errorf("%s: no decision for model %q in it; %s", x.Name, x.Model, r.known())
	}
	for name, other := range r.models {
		if name != x.Model {
			x.OtherModels += len(other.requests) + other.refused
		}
	}
	x.Fleet, x.Pods, x.Refused, x.Changed = m.fleet, m.pods, m.refused, m.changed
	var sizes, pools []int
	for _, p := range m.fleet.Pods {
		sizes, pools = append(sizes, p.BlockSize), append(pools, p.PoolTokens)
	}
	x.BlockSize, x.PoolTokens = most(sizes), most(pools)
	slices.SortStableFunc(m.requests, func(a, b *Request) int { return cmp.Compare(a.At, b.At) })
	for _, q := range m.requests {
		x.Requests = append(x.Requests, *q)
	}
	return x, nil
}

// busiest is the model with the most decisions, the first by name of equals.
func (r *reader) busiest() string {
	best := ""
	for name, m := range r.models {
		if b := r.models[best]; b == nil || len(m.requests) > len(b.requests) || len(m.requests) == len(b.requests) && name < best {
			best = name
		}
	}
	return best
}

func (r *reader) known() string {
	var names []string
	for name, m := range r.models {
		names = append(names, fmt.Sprintf("%q (%d)", name, len(m.requests)))
	}
	const made = "serve --record-decisions makes such a file"
	switch {
	case len(names) == 0 && r.heard:
		return "it holds what engines sent, for explain, top and tap --read; " + made
	case len(names) == 0:
		return made
	}
	slices.Sort(names)
	return spelling.List(names)
}
