package route

import (
	"github.com/eppctl/eppctl/internal/inspect/replay/engine"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
)

// Request is a request as a router sees it.
type Request struct {
	*workload.Request
	Index int    // in the workload
	ID    string // what x-request-id would be
}

// Router is one replica of a policy. Pick chooses a pod and enters the request
// there; First and End report its first byte and its end, once each. Announce and
// Scrape are what comes from the engines, late.
type Router interface {
	Pick(r *Request, now int64) (pod int)
	First(r *Request, now int64)
	End(r *Request, failed bool, now int64)
	Announce(pod int, changes []engine.Change, now int64)
	Scrape(pod int, g engine.Gauges, now int64)
	// Stream tells what is known of a pod's event stream.
	Stream(pod int, s StreamState, now int64)
	// Down and Up tell that a pod left the fleet and came back, empty.
	Down(pod int, now int64)
	Up(pod int, now int64)
	// Second is called once a second.
	Second(now int64)
}

// StreamState says how whole a pod's event stream is.
type StreamState uint8

// The states.
const (
	Live    StreamState = iota
	Gap                 // batches are missing and are being fetched
	Partial             // batches are lost for good
)

// Fleet is what a policy is made for.
type Fleet struct {
	Pods      int
	Replica   int
	Profile   engine.Profile
	BlockSize int
	Distinct  int // blocks of the workload
	Seed      uint64
	Engines   []*engine.Engine // the truth, for the omniscient rows only
	Settings  Settings         // of the product
}

// seconds of nanoseconds.
func seconds(ns int64) float64 { return float64(ns) / 1e9 }
