package replay

import (
	"fmt"
	"sync"
	"time"

	"github.com/eppctl/eppctl/internal/inspect/out"
)

// progress counts requests on a terminal's stderr, once the work takes longer than
// anybody would wait without a sign.
type progress struct {
	s        *out.Streams
	mu       sync.Mutex
	done, of int
	next     time.Time
	written  bool
}

const (
	patience = 500 * time.Millisecond
	refresh  = 100 * time.Millisecond
)

func newProgress(s *out.Streams, of int) *progress {
	return &progress{s: s, of: of, next: time.Now().Add(patience)}
}

func (p *progress) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if now := time.Now(); p.s.ErrTTY && now.After(p.next) {
		fmt.Fprintf(p.s.Err, "\rreplayed %d of %d requests (%d%%)", p.done, p.of, 100*p.done/p.of)
		p.written, p.next = true, now.Add(refresh)
	}
}

func (p *progress) end() {
	if p.written {
		fmt.Fprint(p.s.Err, "\r\x1b[K")
	}
}
