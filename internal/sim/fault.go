package sim

import (
	"net"
	"net/http"
	"sync"
)

// SetSlow makes every step take factor times as long.
func (e *Engine) SetSlow(factor float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.slow = factor
}

// Stall stops the engine in mid-step and keeps it from answering anything,
// probes included, while its connections stay open; Stall(false) lets it go on.
func (e *Engine) Stall(on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.stalled:
		if on {
			e.stalled = make(chan struct{})
		}
	default:
		if !on {
			close(e.stalled)
		}
	}
}

// Kill ends the engine as a crash does: connections are reset, the ports
// refuse. It returns the ids (x-request-id) of the requests whose response had
// begun, which are lost for certain, and of those it had accepted in all.
func (e *Engine) Kill() (begun, accepted []string) {
	e.mu.Lock()
	e.dead = true // from here on no response begins
	for x := range e.live {
		accepted = append(accepted, x.id)
		if x.begun {
			begun = append(begun, x.id)
		}
	}
	e.mu.Unlock()
	e.conns.reset()
	e.Close()
	return begun, accepted
}

// connSet knows an HTTP server's open connections.
type connSet struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

func (c *connSet) track(nc net.Conn, s http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = make(map[net.Conn]struct{})
	}
	switch s {
	case http.StateNew:
		c.open[nc] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(c.open, nc)
	}
}

// reset makes the next close of every connection a RST instead of a FIN.
func (c *connSet) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for nc := range c.open {
		if t, ok := nc.(*net.TCPConn); ok {
			t.SetLinger(0)
		}
	}
}
