package view

import "time"

// Limits say when a pod is left out although it could serve, and how it comes
// back. They come from the policy, with each placement.
type Limits struct {
	// Depth is the number of requests before their first byte at which a pod is
	// full. One that fills up and then answers nothing is drowned, not busy.
	Depth int
	// Errors is how many bad endings in a row open the circuit: server errors of
	// the engine, or requests that end without an answer on a pod that is full.
	Errors int
	// Cooldown is the wait from then to the first probe, Longest the most that
	// failing probes double it to.
	Cooldown, Longest time.Duration
	// Probes is how many requests may be probes at one time.
	Probes int
}

// DefaultLimits stand in for placements that bring none. Five in a row is what
// Envoy's outlier detection takes (consecutive_5xx), and so is one probe at a time
// of its health checks; placements by a policy bring its own depth, these 32 are the preset fixed's.
var DefaultLimits = Limits{Depth: 32, Errors: 5, Cooldown: time.Second, Longest: 30 * time.Second, Probes: 1}

// CircuitState says whether a pod takes requests.
type CircuitState uint8

// The states.
const (
	Closed   CircuitState = iota // it takes requests
	Open                         // bad endings in a row: left out until the cooldown is over
	HalfOpen                     // it is over: a few requests may try the pod
)

// CircuitStates are all of them.
var CircuitStates = [...]CircuitState{Closed, Open, HalfOpen}

func (s CircuitState) String() string { return [...]string{"closed", "open", "half-open"}[s] }

// Circuit is what the endings of a pod's requests say at one instant.
type Circuit struct {
	State  CircuitState
	Errors int // server errors in a row
	Lost   int // requests in a row that ended unanswered, since the pod was full
	// Probing are the probes under way, and Out says that no more may be placed:
	// the circuit is open, or half-open with as many probes as there may be.
	Probing int
	Out     bool
	ProbeIn time.Duration // until the next may be placed
	// Answered counts the first bytes since the pod came, or came back: what a
	// slow start goes by.
	Answered int
}

// circuit leaves out a pod that fails: one that fails fast looks idle and would
// draw everything, and so would one that swallows requests until they time out.
// The account's lock guards it.
type circuit struct {
	limits   Limits
	errors   int
	lost     int
	full     bool // the pod filled up and has not answered since
	answered int
	backoff  time.Duration
	retry    int64  // ns, when a probe may be placed
	probing  int    // probes under way
	round    uint32 // grows when the circuit closes: older probes are none
}

// open reports that the pod is left out, but for probes.
func (c *circuit) open() bool { return c.backoff > 0 }

// place takes over the limits of the policy in force, and makes a request that
// comes when one is due a probe.
func (c *circuit) place(r *Placement, waiting int, now int64) {
	c.limits = r.work.Limits
	if c.limits == (Limits{}) {
		c.limits = DefaultLimits
	}
	c.full = c.full || waiting >= c.limits.Depth
	r.probe = 0 // of the pod it was moved from, whose rounds are not this one's
	if c.open() && c.probing < c.limits.Probes && now >= c.retry {
		r.probe = c.round + 1
		c.probing++
	}
}

// status counts a status of the engine. Any but a server error ends the row of
// errors; that of an event stream comes before anything is computed, and so says
// nothing about requests that go unanswered.
func (c *circuit) status(r *Placement, failed bool, now int64) {
	switch {
	case failed:
		c.errors++
		c.fail(r, now)
	case c.lost < c.limits.Errors:
		c.close()
		c.errors = 0
	default:
		c.errors = 0
	}
}

// answer notes a first byte: whatever there was, the pod works.
func (c *circuit) answer() {
	c.close()
	c.errors, c.lost, c.full = 0, 0, false
	c.answered++
}

// unanswered notes a request that ended without a first byte. Clients give up for
// reasons of their own; only on a pod that has filled up and answers nobody does
// it speak against the pod.
func (c *circuit) unanswered(r *Placement, now int64) {
	if c.full && !r.failed {
		c.lost++
		c.fail(r, now)
	}
}

// fail opens the circuit at the limit, and waits twice as long after a failed
// probe. What requests placed before meet prolongs nothing.
func (c *circuit) fail(r *Placement, now int64) {
	switch {
	case !c.open() && max(c.errors, c.lost) >= c.limits.Errors:
		c.backoff, c.answered = c.limits.Cooldown, 0
	case c.open() && c.probes(r):
		c.settle(r)
		c.backoff = min(2*c.backoff, c.limits.Longest)
	default:
		return
	}
	c.retry = now + int64(c.backoff)
}

// leave waits once more when a probe ends without having told anything.
func (c *circuit) leave(r *Placement, now int64) {
	if c.probes(r) {
		c.settle(r)
		c.retry = now + int64(c.backoff)
	}
}

// probes reports that the request is a probe of this round.
func (c *circuit) probes(r *Placement) bool { return r.probe == c.round+1 }

func (c *circuit) settle(r *Placement) {
	r.probe = 0
	c.probing--
}

// close lets the pod take requests again.
func (c *circuit) close() {
	if c.open() {
		c.backoff, c.retry, c.probing = 0, 0, 0
		c.round++
	}
}

func (c *circuit) read(now int64, x *Circuit) {
	*x = Circuit{Errors: c.errors, Lost: c.lost, Probing: c.probing, Answered: c.answered}
	if !c.open() {
		return
	}
	x.ProbeIn = time.Duration(max(0, c.retry-now))
	x.Out = x.ProbeIn > 0 || c.probing >= c.limits.Probes
	if x.State = HalfOpen; x.ProbeIn > 0 && c.probing == 0 {
		x.State = Open
	}
}

// Status reports the engine's status for the request. failed means a server
// error of its own: an answer that the proxy made up says nothing about the pod
// and is not reported.
func (r *Placement) Status(failed bool, now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.failed = failed
	r.account.change()
	defer r.account.mu.Unlock()
	r.account.circuit.status(r, failed, now)
}
