package view

import (
	"sync"
	"time"
)

// Means are running means over the requests of this router, all pods together.
type Means struct {
	// Prefill is the mean prefill time of the requests placed: what one waiting
	// request in a scraped gauge is taken to cost.
	Prefill time.Duration
	// Residence is the mean time from first byte to end: how long a request
	// occupies the KV pool. While more are in flight than have ended, those that ended
	// are the short ones, and it is at least what the others' ages let one expect.
	Residence time.Duration
}

// Means returns the running means as of now; zero as long as there is nothing to
// average.
func (l *Ledger) Means(now int64) Means { return l.means.read(now) }

type means struct {
	mu                 sync.Mutex
	prefill, residence mean

	inFlight, ended int64
	// born adds up when those in flight were placed (ns). It wraps around, and so does
	// what is taken from it: the sum of their ages is right as long as it is less than
	// 292 years.
	born int64
}

func (m *means) placed(t time.Duration, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prefill.add(t)
	m.inFlight++
	m.born += now
}

// left is the end of a request that was placed at a time, however it ended.
func (m *means) left(placed int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inFlight--
	m.born -= placed
}

func (m *means) stayed(t time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.residence.add(max(0, t))
	m.ended++
}

func (m *means) read(now int64) Means {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := Means{Prefill: time.Duration(m.prefill.v), Residence: time.Duration(m.residence.v)}
	if m.inFlight > m.ended {
		x.Residence = max(x.Residence, m.expected(now))
	}
	return x
}

// expected is how long requests in flight will have stayed: seen at any moment, one is
// on average half through. Without it a fleet that begins under load holds its KV
// pools for free until the first answers end, and prefixes copied then stay for as
// long as anybody uses them (64 prefixes of 40,000 tokens: 0.32 s against 0.25 s).
func (m *means) expected(now int64) time.Duration {
	return time.Duration(2 * float64(m.inFlight*now-m.born) / float64(m.inFlight))
}

// mean is the plain mean of the first hundred values and forgets with step 0.01
// after them: the step the pool term was measured with, without its long start
// from zero.
type mean struct {
	v float64
	n int
}

func (m *mean) add(t time.Duration) {
	if m.n < 100 {
		m.n++
	}
	m.v += (float64(t) - m.v) / float64(m.n)
}
