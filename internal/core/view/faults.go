package view

import "time"

// FaultLimit is how many server errors in a row leave a pod out: what Envoy's
// outlier detection takes by default (consecutive_5xx). A pod that fails fast
// looks idle, and would otherwise draw everything.
const FaultLimit = 5

// A pod that is left out gets one request at a time to show that it is well
// again: the first after firstBackoff, and each that fails doubles the wait.
const (
	firstBackoff = time.Second
	lastBackoff  = 30 * time.Second
)

// faults are one pod's server errors in a row. The account's lock guards it.
type faults struct {
	row     int
	backoff time.Duration
	retry   int64      // ns, when a probe may be placed
	probe   *Placement // under way
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
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	r.account.faults.note(r, failed, now)
}

// note counts an answer. Anything but a server error ends the row. The errors of
// requests that were placed before the pod was left out prolong nothing.
func (f *faults) note(r *Placement, failed bool, now int64) {
	if !failed {
		*f = faults{}
		return
	}
	f.row++
	switch {
	case f.row < FaultLimit:
		return
	case f.row == FaultLimit:
		f.backoff = firstBackoff
	case f.probe == r:
		f.backoff = min(2*f.backoff, lastBackoff)
		f.probe = nil
	default:
		return
	}
	f.retry = now + int64(f.backoff)
}

// place makes a request that comes when one is due the probe.
func (f *faults) place(r *Placement, now int64) {
	if f.row >= FaultLimit && f.probe == nil && now >= f.retry {
		f.probe = r
	}
}

// leave waits once more when the probe ends without a status.
func (f *faults) leave(r *Placement, now int64) {
	if f.probe == r {
		f.probe, f.retry = nil, now+int64(f.backoff)
	}
}

func (f *faults) read(now int64) Faults {
	x := Faults{Row: f.row}
	if f.row >= FaultLimit {
		x.Out = f.probe != nil || now < f.retry
		if f.probe == nil {
			x.ProbeIn = time.Duration(max(0, f.retry-now))
		}
	}
	return x
}

// Faults are a pod's server errors at one instant.
type Faults struct {
	Row int // in a row
	// Out means that they are FaultLimit or more, and that no probe is due: one is
	// under way, or may be placed in ProbeIn.
	Out     bool
	ProbeIn time.Duration
}
