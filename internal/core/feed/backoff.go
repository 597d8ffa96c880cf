package feed

import (
	"math/rand/v2"
	"time"
)

const (
	backoffFirst = 100 * time.Millisecond
	backoffMax   = 5 * time.Second
	// healthy is how long a connection must have lived to start over at the
	// first step.
	healthy = 10 * time.Second
)

// backoff doubles the wait between attempts. Full jitter keeps a fleet that
// restarts together from being dialled in step. The zero value waits up to
// backoffMax.
type backoff struct {
	max   time.Duration // 0 = backoffMax
	limit time.Duration
}

// next returns the wait before the coming attempt.
func (b *backoff) next() time.Duration {
	longest := b.max
	if longest <= 0 {
		longest = backoffMax
	}
	b.limit = min(max(2*b.limit, backoffFirst), longest)
	return rand.N(b.limit)
}

// reset starts over at the first step.
func (b *backoff) reset() { b.limit = 0 }
