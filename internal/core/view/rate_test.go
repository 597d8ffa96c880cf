package view

import (
	"testing"
	"time"
)

var someModel = Prior{Model: "m", TokensPerSecond: 1000}

// lesson is work that the ledger may learn from.
func lesson(prefillMs int64) Work {
	d := time.Duration(prefillMs * ms)
	return Work{Prefill: d, Nominal: d, Prior: someModel, Rank: -1}
}

// What counts is the time from when the pod could begin to the first byte: waiting
// behind other prompts, and idle times, are no part of it.
func TestPaceLeavesTheQueueOut(t *testing.T) {
	l, p := NewLedger(), somePod(0, 1)
	at := int64(0)
	for range paceSamples {
		a, b, c := l.Place(p, lesson(100), at), l.Place(p, lesson(100), at), l.Place(p, lesson(200), at+10*ms)
		a.FirstByte(at + 150*ms)
		b.FirstByte(at + 300*ms)
		c.FirstByte(at + 600*ms)
		for _, r := range []*Placement{a, b, c} {
			r.End(at + 700*ms)
		}
		at += 5000 * ms
	}
	if got := l.Load(p, at-4400*ms).Pace; got.Factor != 1.5 || got.Sure != 1 {
		t.Errorf("%+v, want 1.5 for sure", got)
	}
	if got := l.Rate(someModel); got.Factor != 1.5 || got.Sure != 1 {
		t.Errorf("model: %+v, want 1.5 for sure", got)
	}
	if got := l.Load(p, at-4400*ms+paceMemory/2).Pace; got.Sure != 0.5 {
		t.Errorf("half a minute later: %+v", got)
	}
	if got := l.Rate(Prior{Model: "m", TokensPerSecond: 2000}); got != (Rate{}) {
		t.Errorf("with another configuration: %+v", got)
	}
}

// Prompts of one step of an engine are answered together.
func TestPaceOfPromptsAnsweredTogether(t *testing.T) {
	l, p := NewLedger(), somePod(0, 1)
	a, b := l.Place(p, lesson(100), 0), l.Place(p, lesson(100), 0)
	a.FirstByte(400 * ms)
	b.FirstByte(401 * ms)
	if got := l.Load(p, 401*ms).Pace; got.Factor < 2 || got.Factor > 2.01 {
		t.Errorf("%+v, want 2", got)
	}
}

// A response in one piece shows no first token, but its prompt is computed before
// that of whoever came later; one that only writes its answer takes no time.
func TestPaceBesideWholeResponses(t *testing.T) {
	l, p := NewLedger(), somePod(0, 1)
	whole := l.Place(p, lesson(100), 0)
	l.Place(p, lesson(100), 50*ms).FirstByte(400 * ms) // both prompts took 400 ms
	l.Place(p, lesson(100), 5000*ms).FirstByte(5200 * ms)
	whole.Whole(6000 * ms)
	whole.End(6000 * ms)
	if got := l.Load(p, 6000*ms).Pace; got.Factor != 2 || got.Sure <= 0.39 || got.Sure > 0.4 {
		t.Errorf("%+v, want 2 by two samples", got)
	}
}

// What cannot be measured teaches nothing.
func TestPaceLearnsNothingFrom(t *testing.T) {
	for name, do := range map[string]func(l *Ledger, r func(Work) *Placement){
		"whole responses": func(_ *Ledger, r func(Work) *Placement) { r(lesson(100)).Whole(100 * ms) },
		"short prompts":   func(_ *Ledger, r func(Work) *Placement) { r(lesson(29)).FirstByte(100 * ms) },
		"unknown prompts": func(_ *Ledger, r func(Work) *Placement) {
			r(Work{Prefill: time.Second, Prior: someModel, Rank: -1}).FirstByte(100 * ms)
		},
		"a prompt behind an unknown one": func(_ *Ledger, r func(Work) *Placement) {
			r(Work{Prefill: time.Second, Prior: someModel, Rank: -1})
			r(lesson(100)).FirstByte(1100 * ms)
		},
		"server errors": func(_ *Ledger, r func(Work) *Placement) {
			x := r(lesson(100))
			x.Status(true, 100*ms)
			x.FirstByte(100 * ms)
		},
		"first bytes that nobody reports": func(_ *Ledger, r func(Work) *Placement) {
			x := r(lesson(100))
			x.Unseen(100 * ms)
			x.FirstByte(100 * ms)
		},
		"a prompt behind one given up": func(_ *Ledger, r func(Work) *Placement) {
			gone := r(lesson(500))
			next := r(lesson(100))
			gone.End(200 * ms)
			next.FirstByte(300 * ms)
		},
		"answers that computed nothing": func(_ *Ledger, r func(Work) *Placement) { r(lesson(1000)).FirstByte(ms) },
	} {
		l, p := NewLedger(), somePod(0, 1)
		do(l, func(w Work) *Placement { return l.Place(p, w, 0) })
		if got := l.Load(p, 1200*ms).Pace; got != (Rate{}) {
			t.Errorf("%s: %+v", name, got)
		}
		if got := l.Rate(someModel); got != (Rate{}) {
			t.Errorf("%s: model %+v", name, got)
		}
	}
}

// Prefills far from what the configuration says move a model's rate by a factor of
// four and a pod's pace by one of eight, no further.
func TestRatesAreBounded(t *testing.T) {
	for _, c := range []struct {
		tookMs      int64
		pace, model float64
	}{{20_000, 8, 4}, {150, 0.15, 0.25}, {3000, 3, 3}} {
		l, p := NewLedger(), somePod(0, 1)
		now := int64(0)
		for range rateSure {
			r := l.Place(p, lesson(1000), now)
			now += c.tookMs * ms
			r.FirstByte(now)
			r.End(now)
		}
		pace, model := l.Load(p, now).Pace, l.Rate(someModel)
		if pace != (Rate{c.pace, 1}) || model != (Rate{c.model, 1}) {
			t.Errorf("a second that takes %d ms: pace %+v, model %+v, want %v and %v", c.tookMs, pace, model, c.pace, c.model)
		}
	}
}
