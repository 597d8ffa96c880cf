package serve

import (
	"time"

	"github.com/eppctl/eppctl/internal/recorder"
)

// decisionsPause is the state of a recording that cannot be written: requests go on, and
// it is begun again as soon as it can be.
type decisionsPause struct {
	broken bool
	next   time.Time     // when to try; zero = never
	first  time.Duration // wait before that
	wait   time.Duration // the latest one: it doubles while what is begun breaks again
	begun  time.Time     // the latest recording that was begun again
}

// failed pauses the recording and not the picking: a full disk is no reason to refuse
// requests. What stood in memory only is lost with what comes meanwhile.
func (d *decisions) failed(err error) bool {
	if err == nil || d.pause.broken {
		return err != nil
	}
	lost := d.account.records() - d.kept.records()
	d.met.unrecorded.Add(lost)
	d.dropped.Add(lost + d.account.Dropped - d.kept.Dropped)
	d.account = d.kept
	_ = d.to.End(nil) // closes the file
	p := &d.pause
	if now := time.Now(); d.to.Awaited() { // whoever read the pipe has left
		p.broken, p.next = true, time.Time{}
	} else {
		if p.wait == 0 || now.Sub(p.begun) > lastRetry {
			p.wait = p.first
		} else {
			p.wait = min(2*p.wait, lastRetry)
		}
		p.broken, p.next = true, now.Add(p.wait)
	}
	d.log.Error("decisions: the recording cannot be written, requests go on", "file", d.target.Path, "err", err, "tried_again", !p.next.IsZero(),
		"hint", "make room, or lower decisions.rotate_size and decisions.keep and restart")
	return true
}

// resume begins the recording again where that is due and can be done. The file of
// before is set aside, as one of a rotation is.
func (d *decisions) resume(now time.Time) {
	p := &d.pause
	if p.next.IsZero() || now.Before(p.next) {
		return
	}
	err := d.target.Room()
	var to *recorder.Recorder
	if err == nil {
		to, err = recorder.Begin(d.target, d.header, nil, now)
	}
	if err != nil {
		p.next = now.Add(p.wait)
		return
	}
	p.broken, p.begun, d.to = false, now, to
	d.log.Info("decisions: recorded again", "file", d.target.Path, "before", to.Aside(), "lost", d.dropped.Load())
	d.failed(d.stand(now.UnixNano()))
}
