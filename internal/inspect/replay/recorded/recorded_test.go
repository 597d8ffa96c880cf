package recorded

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect/replay/engine"
)

// file is a recording that a test makes.
type file struct {
	t     testing.TB
	bytes bytes.Buffer
	w     *recording.Writer
	fleet *recording.Fleet
}

func newFile(t testing.TB, f *recording.Fleet) *file {
	x := &file{t: t, fleet: f}
	var err error
	if x.w, err = recording.NewWriter(&x.bytes, recording.Header{Program: "test"}); err != nil {
		t.Fatal(err)
	}
	if f != nil {
		x.put(recording.TypeFleet, 0, f)
	}
	return x
}

func (f *file) put(kind recording.Type, at int64, v any) {
	f.t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := f.w.Write(&recording.Record{Type: kind, At: at, Body: body}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *file) source(whole bool) Source {
	f.t.Helper()
	if whole {
		if err := f.w.Close([]byte(`{}`)); err != nil {
			f.t.Fatal(err)
		}
	} else if err := f.w.Flush(); err != nil {
		f.t.Fatal(err)
	}
	b := f.bytes.Bytes()
	return Source{"test.eptap", func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }}
}

// twoPods is a fleet under the preset pool.
func twoPods(run string) *recording.Fleet {
	f := &recording.Fleet{Run: run, Terms: pick.TermNames(), Weights: map[string]float64{}, BlockTokens: 16, ScrapeMs: 500}
	for _, name := range []string{"a", "b"} {
		f.Pods = append(f.Pods, recording.FleetPod{Name: name, BlockSize: 32, PoolTokens: 5000})
	}
	for _, key := range pick.WeightKeys() {
		f.Weights[key], _ = pick.DefaultPolicy().Weight(key)
	}
	return f
}

// terms are scores of one pod by the terms' names.
func terms(values map[int]float64) []float32 {
	s := make([]float32, len(pick.TermNames()))
	for k, v := range values {
		s[k] = float32(v)
	}
	return s
}

func read(t *testing.T, ask Ask, sources ...Source) *Recording {
	t.Helper()
	r, err := Read(sources, ask)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func number[T any](v T) *T { return &v }

// A recording gives the requests back: when they came, how long they were, what they
// share, and the fleet; over the files of a rotation, and up to where it was cut.
func TestRead(t *testing.T) {
	a := newFile(t, twoPods("r"))
	a.put(recording.TypeDecision, 5e9, &recording.Decision{N: 1, Model: "m", Tokens: 70, Exact: true, Blocks: recording.Hashes{1, 2, 3, 4}, Picked: 1})
	a.put(recording.TypeDecision, 6e9, &recording.Decision{N: 2, Model: "m", Tokens: 40, Exact: true, Blocks: recording.Hashes{1, 2}, Picked: 0, Cached: 32})
	a.put(recording.TypeDecision, 6e9, &recording.Decision{N: 3, Model: "other", Tokens: 40, Picked: 0})
	a.put(recording.TypeDecision, 6e9, &recording.Decision{N: 4, Model: "m", Tokens: 40, Picked: -1, Status: 503})
	b := newFile(t, twoPods("r"))
	b.put(recording.TypeOutcome, 7e9, &recording.Outcome{N: 1, FirstMs: number(100.0), TookMs: 200, Output: number(7), Cached: number(0), Pod: "a"})
	b.put(recording.TypeOutcome, 7e9, &recording.Outcome{N: 99})
	b.put(recording.TypeDecision, 8e9, &recording.Decision{N: 5, Model: "m", Tokens: 50, Unmatched: "no-provider", Picked: 0})
	r := read(t, Ask{}, a.source(true), b.source(false))
	if r.Model != "m" || len(r.Requests) != 3 || r.Pods != 2 || r.BlockSize != 32 || r.PoolTokens != 5000 || r.Runs != 1 || r.Refused != 1 || r.OtherModels != 1 {
		t.Errorf("%+v", r)
	}
	w, misfits, err := r.Workload(func(_, prompt, _ int) bool { return prompt < 60 })
	if err != nil || misfits != 1 || len(w.Requests) != 2 {
		t.Errorf("%d misfits, %v", misfits, err)
	}
	w, _, err = r.Workload(func(int, int, int) bool { return true })
	if err != nil || w.BlockSize != 32 || len(w.Requests) != 3 {
		t.Fatalf("%+v %v", w, err)
	}
	x, y, z := w.Requests[0], w.Requests[1], w.Requests[2]
	switch {
	case x.At != 0 || y.At != 1 || z.At != 3 || x.Output != 7 || y.Output != 7 || z.Prompt != 50:
		t.Errorf("%+v", w.Requests)
	case len(x.Blocks) != 3 || len(y.Blocks) != 2 || len(z.Blocks) != 2:
		t.Errorf("blocks of 32: %v %v %v", x.Blocks, y.Blocks, z.Blocks)
	case x.Blocks[0] != y.Blocks[0] || x.Blocks[1] == y.Blocks[1] || slices.Contains(z.Blocks, x.Blocks[0]):
		t.Errorf("one block is shared: %v %v %v", x.Blocks, y.Blocks, z.Blocks)
	}
	o := r.Observed()
	if o.Requests != 3 || o.Streamed != 1 || o.Mean != 0.1 || math.Abs(o.Hit-32.0/160) > 1e-9 || math.Abs(o.MaxMean-2) > 1e-9 {
		t.Errorf("%+v: the first was served by a as well", o)
	}
	notes := strings.Join(r.Notes(), "\n")
	for _, want := range []string{"1 of 3 prompts had no token ids", "2 of 3 answers were not seen: taken as 7 tokens", "other models", "refused", "ends early at offset"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes lack %q:\n%s", want, notes)
		}
	}
	const fix = "eppctl envoy-config --response-body streamed"
	if strings.Contains(notes, fix) {
		t.Errorf("one answer was seen, so Envoy shows them:\n%s", notes)
	}
	if unseen := strings.Join(read(t, Ask{}, a.source(false)).Notes(), "\n"); !strings.Contains(unseen, "2 of 2 answers were not seen") || !strings.Contains(unseen, fix) {
		t.Errorf("no answer was seen, for which there is a cause and a cure:\n%s", unseen)
	}
	if r = read(t, Ask{Model: "other"}, a.source(false)); len(r.Requests) != 1 || r.OtherModels != 3 {
		t.Errorf("--model: %+v", r)
	}
	if r = read(t, Ask{Limit: 1}, a.source(false)); len(r.Requests) != 1 {
		t.Errorf("--requests: %d", len(r.Requests))
	}
	if _, err := Read([]Source{a.source(false)}, Ask{Model: "x"}); err == nil || !strings.Contains(err.Error(), `there are "m" (2), "other" (1)`) {
		t.Errorf("%v", err)
	}
}

// Requests are in the order of their time stamps, whatever those are: farther apart than
// an int64 of ns can say too.
func TestTimesFarApart(t *testing.T) {
	f := newFile(t, twoPods("r"))
	for i, at := range []int64{math.MaxInt64, 1, math.MinInt64, 0} {
		f.put(recording.TypeDecision, at, &recording.Decision{N: uint64(i), Model: "m", Tokens: 40, Exact: true})
	}
	r := read(t, Ask{}, f.source(true))
	if !slices.IsSortedFunc(r.Requests, func(a, b Request) int { return cmp.Compare(a.At, b.At) }) || len(r.Requests) != 4 {
		t.Errorf("%+v", r.Requests)
	}
	w, _, err := r.Workload(func(int, int, int) bool { return true })
	if err != nil || w.Requests[3].At < 1e10 {
		t.Errorf("%+v", w.Requests)
	}
}

// Hashes of two runs are of two keys: equal ones by chance mean nothing, and outcomes
// go to their own run's decisions.
func TestRuns(t *testing.T) {
	a, b := newFile(t, twoPods("r")), newFile(t, twoPods("s"))
	a.put(recording.TypeDecision, 1, &recording.Decision{N: 1, Model: "m", Tokens: 40, Exact: true})
	b.put(recording.TypeDecision, 2, &recording.Decision{N: 1, Model: "m", Tokens: 40, Exact: true})
	b.put(recording.TypeOutcome, 3, &recording.Outcome{N: 1, Output: number(9)})
	r := read(t, Ask{}, a.source(true), b.source(true))
	if _, seen := r.Requests[0].Output(); seen || r.Runs != 2 {
		t.Errorf("%+v", r.Requests)
	}
	if n, seen := r.Requests[1].Output(); !seen || n != 9 {
		t.Errorf("%+v", r.Requests)
	}
}

// What is no recording, is damaged at once or contradicts itself is refused with its
// name; what is damaged later is used up to there.
func TestRefused(t *testing.T) {
	source := func(b []byte) Source {
		return Source{"x.eptap", func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }}
	}
	if _, err := Read([]Source{source([]byte("{}"))}, Ask{}); !errors.Is(err, recording.ErrNoRecording) || !strings.Contains(err.Error(), "x.eptap") {
		t.Errorf("%v", err)
	}
	bad := newFile(t, twoPods("r"))
	bad.put(recording.TypeDecision, 1, &recording.Decision{N: 1, Picked: 7})
	if _, err := Read([]Source{bad.source(true)}, Ask{}); err == nil || !strings.Contains(err.Error(), "pod 7 of a fleet of 2") {
		t.Errorf("%v", err)
	}
	wrong := twoPods("r")
	wrong.Weights["alpha"] = -1
	if _, err := Read([]Source{newFile(t, wrong).source(true)}, Ask{}); err == nil || !strings.Contains(err.Error(), "recorded weights") {
		t.Errorf("%v", err)
	}
	if _, err := Read([]Source{newFile(t, nil).source(true)}, Ask{}); err == nil || !strings.Contains(err.Error(), "serve --record-decisions") {
		t.Errorf("%v", err)
	}
	ok := newFile(t, twoPods("r"))
	for n := range uint64(3) {
		ok.put(recording.TypeDecision, 1, &recording.Decision{N: n, Model: "m", Tokens: 40})
	}
	ok.source(true)
	b := ok.bytes.Bytes()
	b[len(b)-40] ^= 1
	if r := read(t, Ask{}, source(b)); len(r.Requests) != 2 || !errors.Is(r.Cut, recording.ErrDamaged) {
		t.Errorf("%d requests, %v", len(r.Requests), r.Cut)
	}
}

// Recorded decisions are decided anew by their terms: exactly where these tell, by
// how likely where it was a tie, and not at all where they do not tell.
func TestRedecide(t *testing.T) {
	with := func(w ...pick.Weight) func(*pick.Policy) (*pick.Policy, error) {
		return func(p *pick.Policy) (*pick.Policy, error) { return p.With(w...) }
	}
	kv, queue, nan := pick.TermKV, pick.TermQueue, float32(math.NaN())
	warm, idle := terms(map[int]float64{kv: 1, queue: -0.6}), terms(nil)
	for name, c := range map[string]struct {
		scores []float32
		picked int
		change pick.Weight
		other  float64
		known  bool
	}{
		"as it was":                {slices.Concat(warm, idle), 0, pick.Weight{Key: "alpha", Value: 1}, 0, true},
		"the queue outweighs":      {slices.Concat(warm, idle), 0, pick.Weight{Key: "alpha", Value: 0.5}, 1, true},
		"it still does not":        {slices.Concat(warm, idle), 0, pick.Weight{Key: "alpha", Value: 0.7}, 0, true},
		"a tie stays one":          {slices.Concat(idle, idle), 1, pick.Weight{Key: "alpha", Value: 2}, 0, true},
		"a tie that was none":      {slices.Concat(terms(map[int]float64{kv: 1}), idle), 0, pick.Weight{Key: "alpha", Value: 0}, 0.5, true},
		"a wider window":           {slices.Concat(terms(map[int]float64{kv: 0.1}), idle), 0, pick.Weight{Key: "tie_window", Value: 0.2}, 0.5, true},
		"the other could not":      {slices.Concat(warm, terms(map[int]float64{kv: math.NaN()})), 0, pick.Weight{Key: "alpha", Value: 0}, 0, true},
		"the pick was none":        {append([]float32{nan}, slices.Concat(warm, idle)[1:]...), 0, pick.Weight{Key: "alpha", Value: 2}, 0, false},
		"no weight of a term":      {slices.Concat(warm, idle), 0, pick.Weight{Key: "breaker.depth", Value: 3}, 0, false},
		"hardware moves with it":   {slices.Concat(warm, terms(map[int]float64{pick.TermHardware: -1})), 0, pick.Weight{Key: "alpha", Value: 2}, 0, false},
		"hardware with delay too":  {slices.Concat(warm, terms(map[int]float64{pick.TermHardware: -1})), 0, pick.Weight{Key: "delay", Value: 2}, 0, false},
		"tier does not":            {slices.Concat(warm, terms(map[int]float64{pick.TermTier: -1})), 0, pick.Weight{Key: "delay", Value: 2}, 0, true},
		"fewer wait elsewhere":     {slices.Concat(terms(map[int]float64{kv: 1, pick.TermDelay: -0.6}), idle), 0, pick.Weight{Key: "delay", Value: 2}, 1, true},
		"hardware does not":        {slices.Concat(warm, terms(map[int]float64{pick.TermHardware: -1})), 0, pick.Weight{Key: "pool", Value: 2}, 0, true},
		"without terms":            {nil, 0, pick.Weight{Key: "alpha", Value: 2}, 0, false},
		"weight that was not zero": {slices.Concat(terms(map[int]float64{pick.TermConcurrency: -3}), terms(map[int]float64{kv: -0.1})), 0, pick.Weight{Key: "beta", Value: 1}, 1, true},
	} {
		f := newFile(t, twoPods("r"))
		f.put(recording.TypeDecision, 1, &recording.Decision{N: 1, Model: "m", Tokens: 40, Picked: c.picked, Scores: c.scores})
		r := read(t, Ask{Alternatives: []Alternative{{"x", with(c.change)}}}, f.source(true))
		if got := r.Changed[0]; got.Of != map[bool]int{true: 1, false: 0}[c.known] || got.Decisions != c.other {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The pace is the median over prompts that met nothing, and needs enough of them.
func TestPace(t *testing.T) {
	p, err := engine.ProfileByName(engine.Profiles()[0])
	if err != nil {
		t.Fatal(err)
	}
	f := newFile(t, twoPods("r"))
	busy := terms(map[int]float64{pick.TermQueue: -1})
	for n := range uint64(60) {
		d := &recording.Decision{N: n, Model: "m", Tokens: 2000, Exact: true, Scores: slices.Concat(terms(nil), terms(nil))}
		took := 1e3 * 2.5 * (p.Base + p.Prefill(2000, 0))
		switch {
		case n%3 == 1:
			d.Scores, took = slices.Concat(busy, terms(nil)), 10*took
		case n%3 == 2:
			d.Tokens, took = 100, 10*took
		}
		f.put(recording.TypeDecision, int64(n), d)
		f.put(recording.TypeOutcome, int64(n), &recording.Outcome{N: n, FirstMs: &took, TookMs: took})
	}
	r := read(t, Ask{}, f.source(true))
	if pace, n := r.Pace(&p); math.Abs(pace-2.5) > 1e-9 || n != 20 {
		t.Errorf("%v of %d", pace, n)
	}
	r.Requests = r.Requests[:50]
	if pace, n := r.Pace(&p); pace != 1 || n != 0 {
		t.Errorf("%v of %d: too few", pace, n)
	}
}

// FuzzRead: whatever a file holds, it is a sound workload or a plain error.
func FuzzRead(f *testing.F) {
	x := newFile(f, twoPods("r"))
	x.put(recording.TypeDecision, 5, &recording.Decision{N: 1, Model: "m", Tokens: 70, Exact: true, Blocks: recording.Hashes{1, 2}, Scores: slices.Concat(terms(nil), terms(nil))})
	x.put(recording.TypeOutcome, 9, &recording.Outcome{N: 1, FirstMs: number(3.0), Output: number(4)})
	x.source(true)
	f.Add(x.bytes.Bytes(), []byte(`{"n":1}`), []byte(`{"n":1}`))
	f.Add([]byte{}, []byte(`{"n":2,"tokens":64,"blocks":"AAAAAAAAAAE=","picked":1}`), []byte(`{"n":2,"first_ms":1e9}`))
	f.Fuzz(func(t *testing.T, b, decision, outcome []byte) {
		own := newFile(t, twoPods("r"))
		for _, r := range []*recording.Record{
			{Type: recording.TypeDecision, At: int64(len(outcome)), Body: decision},
			{Type: recording.TypeOutcome, Body: outcome},
			{Type: recording.TypeFleet, Body: outcome},
		} {
			if err := own.w.Write(r); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range []Source{{"b", func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }}, own.source(true)} {
			r, err := Read([]Source{s}, Ask{Alternatives: []Alternative{{"x", func(p *pick.Policy) (*pick.Policy, error) { return p, nil }}}})
			if err != nil {
				continue
			}
			p, _ := engine.ProfileByName(engine.Profiles()[0])
			if c := r.Changed[0]; !(c.Decisions >= 0 && c.Decisions <= float64(c.Of)) {
				t.Errorf("%+v", c)
			}
			if o := r.Observed(); math.IsNaN(o.Mean) || math.IsNaN(o.Hit) {
				t.Errorf("%+v", o)
			}
			if pace, _ := r.Pace(&p); !(pace > 0) {
				t.Errorf("pace %v", pace)
			}
			r.Notes()
			w, _, err := r.Workload(func(_, prompt, _ int) bool { return prompt < 1<<16 })
			if err == nil {
				w.Stats()
				w.Spread(1)
			}
			_ = fmt.Sprint(err)
		}
	})
}
