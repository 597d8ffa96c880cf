package feed

import (
	"log/slog"
	"maps"
	"sync"
)

// gates are the listeners in use, one per address. Pods share them.
type gates struct {
	dialer dialer
	log    *slog.Logger

	mu      sync.Mutex
	open    map[string]*gate // by endpoint
	refused map[string]uint64
}

// join enters a claim at an endpoint, listening there if nobody did.
func (g *gates) join(endpoint string, c *claim) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.open[endpoint]
	if at == nil {
		var err error
		if at, err = openGate(endpoint, g.dialer, g.log, g.refuse); err != nil {
			return err
		}
		g.open[endpoint] = at
	}
	at.join(c)
	return nil
}

// leave withdraws a claim; the last one closes the listener.
func (g *gates) leave(endpoint string, c *claim) {
	g.mu.Lock()
	at := g.open[endpoint]
	last := at != nil && at.leave(c)
	if last {
		delete(g.open, endpoint)
	}
	g.mu.Unlock()
	if last {
		at.close() // outside the lock: its connections may be counting
	}
}

func (g *gates) refuse(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused[why]++
}

func (g *gates) counts() map[string]uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.refused)
}
