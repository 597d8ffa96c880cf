package check

import (
	"fmt"
	"sync"
	"time"

	"github.com/eppctl/eppctl/internal/inspect/out"
)

// progress counts pods on a terminal's stderr, once the work takes longer than
// anybody would wait without a sign.
type progress struct {
	s       *out.Streams
	mu      sync.Mutex
	done    int
	of      int
	begun   time.Time
	written bool
}

const patience = 500 * time.Millisecond

func newProgress(s *out.Streams, of int) *progress { return &progress{s: s, of: of, begun: time.Now()} }

func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if p.s.ErrTTY && time.Since(p.begun) > patience {
		fmt.Fprintf(p.s.Err, "\rprobed %d of %d pods", p.done, p.of)
		p.written = true
	}
}

func (p *progress) end() {
	if p.written {
		fmt.Fprint(p.s.Err, "\r\x1b[K")
	}
}
