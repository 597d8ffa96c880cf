package feed

import (
	"context"
	"errors"
	"sync"
)

// inbox is the opener of a member whose publisher dials us: it waits for the
// gate. A new connection replaces the present one, which is then most likely
// half-open.
type inbox struct {
	mu      sync.Mutex
	waiting FrameSource
	current FrameSource
	closed  bool
	refused string        // why a publisher with the member's address was turned away, "" = none was
	ready   chan struct{} // capacity 1
	said    string        // open's own: the refusal it returned last
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

// offer hands a connection over; false when nobody will take it.
func (b *inbox) offer(src FrameSource) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	if b.waiting != nil {
		b.waiting.Close()
	}
	if b.current != nil {
		b.current.Close()
	}
	b.waiting, b.refused = src, ""
	signal(b.ready)
	return true
}

// refuse tells whoever waits that a publisher was turned away that may have been
// this member's.
func (b *inbox) refuse(why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil && b.refused == "" {
		b.refused = why
		signal(b.ready)
	}
}

func (b *inbox) open(ctx context.Context) (FrameSource, error) {
	for {
		b.mu.Lock()
		b.current, b.waiting = b.waiting, nil
		src, refused := b.current, b.refused
		b.refused = ""
		b.mu.Unlock()
		if src != nil {
			b.said = ""
			return src, nil
		}
		if refused != "" && refused != b.said {
			b.said = refused
			return nil, &linkError{FaultRefused, errors.New(refused)}
		}
		select {
		case <-b.ready:
		case <-ctx.Done():
			return nil, &linkError{FaultClosed, ctx.Err()}
		}
	}
}

func (*inbox) passive() bool { return true }

// close ends what waits. The subscriber has closed what it took.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.waiting != nil {
		b.waiting.Close()
		b.waiting = nil
	}
}
