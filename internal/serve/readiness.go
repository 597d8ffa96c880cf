package serve

import (
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/view"
)

// How long readiness waits for the fleet: a pod that is down, or that takes
// connections and says nothing, must not keep the others from being served.
type patience struct {
	// quiet is for what says nothing while another pod has spoken: twice the time that
	// a scrape may take, after which a decision leaves a mute pod out anyway.
	quiet time.Duration
	// all is for everything else: a fleet that is quiet as a whole, and histories that
	// are being replayed.
	all time.Duration
}

var startupPatience = patience{quiet: 2 * time.Second, all: 10 * time.Second}

// progress is how far a pod is known.
type progress uint8

const (
	unheard  progress = iota // it has said nothing, or a port of it has not
	catching                 // its history is being replayed
	settled                  // nothing more is to be had soon
)

// progressOf says how far a pod is known. A stream that is not connected is as quiet as
// an engine that does not answer.
func progressOf(v *view.View, p *pod.Pod) progress {
	if p.Target == "" || p.Spec.Engine == pod.EngineUnknown { // not asked yet
		return unheard
	}
	so := settled
	if !hasEvents(p) {
		return so
	}
	for _, m := range p.Members {
		switch v.Sync.Get(m).State {
		case view.NoEvents, view.Connecting:
			return unheard
		case view.Syncing:
			so = catching
		}
	}
	return so
}

// complete reports whether the fleet is known as far as is worth waiting for, age after
// the start.
func (w patience) complete(v *view.View, age time.Duration) bool {
	if age >= w.all {
		return true
	}
	var of [settled + 1]int
	for _, p := range v.Pods.Pods {
		of[progressOf(v, p)]++
	}
	switch {
	case of[catching] > 0:
		return false
	case of[unheard] > 0:
		return of[settled] > 0 && age >= w.quiet
	}
	return true
}
