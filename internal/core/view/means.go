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
	// occupies the KV pool.
	Residence time.Duration
}

// Means returns the running means; zero as long as there is nothing to average.
func (l *Ledger) Means() Means { return l.means.read() }

type means struct {
	mu                 sync.Mutex
	prefill, residence mean
}

func (m *means) placed(t time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prefill.add(t)
}

func (m *means) stayed(t time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.residence.add(max(0, t))
}

func (m *means) read() Means {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Means{Prefill: time.Duration(m.prefill.v), Residence: time.Duration(m.residence.v)}
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
