package tap

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// run is a running Command. One goroutine uses it.
type run struct {
	*Command
	s        *out.Streams
	ctx      context.Context
	decoder  decoder
	thin     thin
	account  *Account
	stats    *Stats
	out      *output
	print    printer
	recorder *writer
	parts    map[*recording.Pod]int // of the last replayed message
	replays  replays
	begun    time.Time
	recorded span // of a recording that is read: its time, in ns
	taken    bool // any record
	waiting  waiting
}

// loop takes records until something ends it.
func (r *run) loop(records <-chan []*recording.Record, ended chan error) error {
	tick := time.NewTicker(outputEvery)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-r.ctx.Done():
			return nil
		case err := <-ended:
			close(ended) // the answer to whoever waits for it again
			return err
		case rs := <-records:
			err = r.takeAll(rs)
		case now := <-tick.C:
			err = r.tick(now)
		case <-r.Report:
			r.report()
		case <-r.Flush:
			err = r.recorder.flush()
		}
		if err != nil {
			return err
		}
	}
}

// tick hands on what has come since the last one, and tells of pods that are silent.
func (r *run) tick(now time.Time) error {
	if err := r.out.hand(r.ctx); err != nil {
		return err
	}
	if err := r.rotate(); err != nil {
		return err
	}
	if _, past := r.Source.(*File); !past && r.s.ErrTTY && r.visible() {
		for _, line := range r.waiting.silent(now.UnixNano(), r.begun.UnixNano()) {
			fmt.Fprintln(r.s.Err, line)
		}
	}
	return r.recorder.handOn(now)
}

// takeAll takes records that came together; who looks on sees them at once.
func (r *run) takeAll(rs []*recording.Record) error {
	for _, rec := range rs {
		if err := r.take(rec); err != nil {
			return err
		}
	}
	if r.s.OutTTY {
		if err := r.out.hand(r.ctx); err != nil {
			return err
		}
	}
	if r.recorder.awaited() {
		return r.recorder.flush()
	}
	return nil
}

// take does everything with one record.
func (r *run) take(rec *recording.Record) error {
	if rec.Type == recording.TypeAccount {
		return nil // of the recording that is read; ours comes at the end
	}
	if at := uint64(rec.At); rec.At > 0 {
		if r.recorded.from == 0 {
			r.recorded = span{at, at}
		}
		r.recorded = span{min(r.recorded.from, at), max(r.recorded.to, at)}
	}
	r.taken = true
	r.waiting.take(rec)
	e := r.decoder.decode(rec)
	for _, c := range r.Consumers {
		c.Take(e)
	}
	if r.stats != nil && r.Filter.Admits(e) {
		r.stats.Take(e)
	}
	r.account.take(e)
	if rec.Type == recording.TypeReplay {
		r.parts[rec.Pod] = len(rec.Parts)
	}
	r.Filter.see(e)
	shown, err := r.show(e)
	if err == nil && r.End && r.replays.over(rec, r.Wanted) {
		err = errEnough
	}
	if r.recorder != nil && (shown || !r.Write.Filtered || !isMessage(rec)) {
		if err := r.recorder.write(rec); err != nil {
			return err
		}
		if err := r.rotate(); err != nil {
			return err
		}
	}
	if err == nil && r.out.full() {
		err = r.out.hand(r.ctx)
	}
	return err
}

// isMessage reports that a record is of the events themselves.
func isMessage(r *recording.Record) bool {
	return r.Type == recording.TypeFrame || r.Type == recording.TypeReplay
}

// show prints what is to be seen of an entry, and reports whether anything is.
func (r *run) show(e *Entry) (shown bool, err error) {
	switch e.Type {
	case recording.TypeNotice:
		n := noticeOf(e, r.parts[e.Pod])
		r.tell(n)
		if r.visible() {
			r.print.notice(n)
		}
		return true, nil
	case recording.TypeFrame, recording.TypeReplay:
	default:
		return false, nil
	}
	bad := badFrames(e)
	told := 0
	tell := func(before int) {
		for ; told < len(bad) && bad[told].before <= before; told++ {
			if r.visible() {
				r.print.notice(bad[told])
			}
		}
	}
	if e.Batch != nil {
		for i := range e.Batch.Events {
			tell(i)
			ev := &e.Batch.Events[i]
			if !r.Filter.shows(e, ev) {
				continue
			}
			shown = true
			r.account.Matched++
			if r.visible() && !r.thin.hides(ev, e.At) {
				r.print.event(e, ev)
			}
			if r.account.Matched == r.Count {
				err = errEnough
				break
			}
		}
	}
	tell(math.MaxInt)
	if shown = shown || len(bad) > 0; shown && r.visible() {
		r.print.message(e)
	}
	return shown, err
}

// visible reports that events are shown at all.
func (r *run) visible() bool { return !r.Quiet && r.stats == nil }

// tell writes a change of a connection to stderr where no row shows it.
func (r *run) tell(n *Notice) {
	if _, past := r.Source.(*File); past {
		return
	}
	if (n.Notice == recording.Up || n.Notice == recording.Down) && !r.visible() {
		fmt.Fprintf(r.s.Err, "tap: %s: %s: %s\n", out.Clean(n.name()), n.Notice, out.Clean(n.text()))
	}
}

func (r *run) rotate() error {
	if r.recorder == nil || !r.recorder.Due(time.Now()) {
		return nil
	}
	r.complete()
	return r.recorder.rotate(r.account, time.Now())
}
