package view

import (
	"slices"
	"sync"
)

// Prior names what a rate is learned against: a model and the prefill rate it is
// configured with. Another configuration is another Prior, and learning begins
// anew.
type Prior struct {
	Model           string
	TokensPerSecond float64
}

// Rate is what was learned of a prefill: the seconds it takes per second that the
// Prior says. Sure is from 0, nothing is known and Factor means nothing, to 1.
type Rate struct {
	Factor float64
	Sure   float64
}

const (
	// paceSamples is how many samples of a pod count. Of nine the median moves at
	// the fifth, so a pod that turns slow is known by five prefills, and four that
	// mean nothing do no harm.
	paceSamples = 9
	// rateSamples is how many of a model count, from all its pods.
	rateSamples = 64
	// rateSure is how many samples of a model are believed in full.
	rateSure = 16
	// leastPrefill is the shortest prefill that tells a rate: a step of a 32B model
	// on two H100 takes 15 ms without any token.
	leastPrefill = int64(30e6)
	// paceMemory is how long a pod's pace is believed without a new sample, less by
	// the second: a pod that gets no requests because it was slow must be tried.
	paceMemory = int64(60e9)
	// together is how far apart the answers of one step of an engine come.
	together = int64(2e6)
	// Beyond these bounds it is no calibration but a broken measurement, or a prior
	// that is one: what a model's rate is multiplied by stays within four.
	leastFactor, mostFactor = 1.0 / 8, 8
	leastRate, mostRate     = 1.0 / 4, 4
)

// meter learns the pace of one rank from the times between its answers. What it
// compares is work and time: from the moment the pod could begin with a prompt,
// which is when it came or when the answer before it was out, to its first byte.
// So time in the queue does not count, and neither do idle times. The account's
// lock guards it.
type meter struct {
	prior   Prior
	done    int64 // ns, of the last first byte
	busy    int64 // ns, of the window: answers of one step come together
	nominal int64 // ns, that the prior says of it
	samples [paceSamples]float64
	n       int
	last    int64 // ns, of the last sample
	factor  float64
	spoiled bool // work of unknown size was done since the last answer
}

// answer takes the first byte of r, which is still linked among the waiting
// requests. Engines compute prompts in the order of their arrival, so those before
// r that are not answered are computed too: their answers come whole, after the
// last token, and show nobody when. Those that should have been computed before r
// came are no part of it. It returns a sample when one is complete.
func (m *meter) answer(r *Placement, now int64) (sample float64, ok bool) {
	if m.prior != r.work.Prior {
		*m = meter{prior: r.work.Prior, done: m.done, spoiled: m.spoiled}
	}
	begin, nominal, known := max(m.done, r.at), int64(0), !m.spoiled
	count := func(x *Placement) {
		if x.metered {
			return
		}
		x.metered = true
		begin = min(begin, max(m.done, x.at))
		nominal += int64(x.work.Nominal)
		known = known && x.work.Nominal > 0 && x.work.Prior == m.prior
	}
	count(r)
	alone := true // nothing else can be answered by the same step
	for x := r.newer; x != nil && alone; x = x.newer {
		alone = x.lane != r.lane
	}
	for x := r.older; x != nil; x = x.older {
		if x.lane == r.lane && x.ready > r.at {
			count(x)
		}
	}
	if now-m.done > together {
		sample, ok = m.close()
	}
	m.done, m.spoiled = now, false
	if !known || nominal != 0 && nominal < leastPrefill {
		m.drop()
		return sample, ok
	}
	m.busy += now - begin
	m.nominal += nominal
	if !ok && alone {
		sample, ok = m.close()
	}
	if ok {
		m.last = now
	}
	return sample, ok
}

// spoil says that a waiting request was given up: how much of it was computed
// nobody knows, and others waited for that.
func (m *meter) spoil() {
	m.drop()
	m.spoiled = true
}

// drop forgets the window: something in it says nothing.
func (m *meter) drop() { m.busy, m.nominal = 0, 0 }

// close makes a sample of the window.
func (m *meter) close() (sample float64, ok bool) {
	if m.nominal < leastPrefill {
		return 0, false
	}
	sample = float64(m.busy) / float64(m.nominal)
	m.drop()
	if sample < leastFactor {
		return 0, false // no device is that fast: an answer that computed nothing
	}
	m.samples[m.n%paceSamples] = sample
	m.n++
	sorted := m.samples
	m.factor = min(median(sorted[:min(m.n, paceSamples)]), mostFactor)
	return sample, true
}

// read returns the pace as far as it is still believed.
func (m *meter) read(now int64) Rate { return paceOf(m.n, m.factor, m.last, now) }

func paceOf(n int, factor float64, last, now int64) Rate {
	if n == 0 || now-last >= paceMemory {
		return Rate{}
	}
	sure := min(1, float64(n)/(paceSamples/2+1))
	return Rate{factor, sure * (1 - float64(max(0, now-last))/float64(paceMemory))}
}

// rates learns what a model's prefill takes on the pods of the fleet together:
// the reference beside which one of them is slow.
type rates struct {
	mu  sync.Mutex
	of  map[Prior]*modelRate
	buf [rateSamples]float64
}

type modelRate struct {
	samples [rateSamples]float64
	n       int
	factor  float64
}

func (s *rates) add(p Prior, sample float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.of[p]
	if m == nil {
		if s.of == nil {
			s.of = map[Prior]*modelRate{}
		}
		m = &modelRate{}
		s.of[p] = m
	}
	m.samples[m.n%rateSamples] = sample
	m.n++
	s.buf = m.samples
	m.factor = min(max(median(s.buf[:min(m.n, rateSamples)]), leastRate), mostRate)
}

// Rate returns what was learned of a model on all its pods.
func (l *Ledger) Rate(p Prior) Rate {
	l.rates.mu.Lock()
	defer l.rates.mu.Unlock()
	m := l.rates.of[p]
	if m == nil {
		return Rate{}
	}
	return Rate{m.factor, min(1, float64(m.n)/rateSure)}
}

// median sorts v.
func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
