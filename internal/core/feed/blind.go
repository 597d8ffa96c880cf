package feed

import (
	"log/slog"
	"sync"
)

// blindAfter failures in a row make a pod's page count as unreadable: with the
// back-off they take two seconds at the default interval, the age at which its
// values turn stale.
const blindAfter = 3

// blindness watches for the moment at which no pod's page can be read any more.
// One pod that fails is on the board; a whole fleet that does is most likely a
// cause of ours, such as a network policy, and would go unnoticed: routing goes
// on by what we placed ourselves. Any goroutine may call its methods.
type blindness struct {
	log *slog.Logger // nil = nothing

	mu              sync.Mutex
	scraped, failed int // pods, and those among them with an unreadable page
	warned          bool
}

// join and leave count a pod that is scraped; unread tells whether its page
// counted as unreadable.
func (b *blindness) join() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scraped++
}

func (b *blindness) leave(unread bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scraped--
	if unread {
		b.failed--
	}
	// Not a word: that the last unreadable pod is gone makes no page readable.
	b.warned = b.warned && b.scraped > 0
}

// fail counts a pod whose page has become unreadable.
func (b *blindness) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed++
	if b.log != nil && b.failed == b.scraped && !b.warned {
		b.log.Warn("no pod's metrics page can be read: load is what we placed ourselves", "pods", b.scraped, "err", err)
		b.warned = true
	}
}

// read hears of the first page that could be read of a pod, or the first again;
// unread tells whether its page counted as unreadable.
func (b *blindness) read(unread bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if unread {
		b.failed--
	}
	if b.warned {
		b.log.Info("metrics pages can be read again", "failing", b.failed, "pods", b.scraped)
		b.warned = false
	}
}
