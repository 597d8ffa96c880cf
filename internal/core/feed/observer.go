package feed

import (
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/core/view"
)

// observer tells a hub what one subscriber takes from its stream, in the order in
// which it deals with it. The applier's goroutine calls it; watched may be called
// from any. A nil observer tells nobody.
type observer struct {
	hub *recording.Hub
	pod *recording.Pod

	gone      func() // called at every Down; nil = nobody
	isUp      bool
	downWhy   string // of the last Down told, "" = connected since
	recovered struct {
		count       uint64
		first, last uint64
		began       int64
	}
}

// observe returns the observer of a stream that a hub announces; nil without a hub.
func observe(hub *recording.Hub, p recording.Pod) *observer {
	if hub == nil {
		return nil
	}
	o := &observer{hub: hub, pod: &p}
	hub.Open(o.pod, Now())
	return o
}

// close withdraws the stream.
func (o *observer) close(why string) {
	if o == nil {
		return
	}
	if o.isUp {
		o.down(why, Now())
	}
	o.hub.Close(o.pod)
}

func (o *observer) watched() bool { return o != nil && o.hub.Watched() }

// notice publishes one. Up and Down go out unwatched too: the hub keeps them for
// whoever comes.
func (o *observer) notice(at int64, n recording.Notice) {
	o.hub.Publish(&recording.Record{Type: recording.TypeNotice, At: at, Pod: o.pod, Notice: n})
}

func (o *observer) up(how string, at int64) {
	if o == nil {
		return
	}
	o.isUp, o.downWhy = true, ""
	o.notice(at, recording.Notice{Kind: recording.Up, Why: how})
}

// down is told once per reason: a publisher that is not there is dialled again and
// again.
func (o *observer) down(why string, at int64) {
	if o == nil {
		return
	}
	if o.gone != nil {
		o.gone()
	}
	if o.downWhy == why {
		return
	}
	o.isUp, o.downWhy = false, why
	o.notice(at, recording.Notice{Kind: recording.Down, Why: why})
}

// state tells in what state the stream is. What lasts goes out unwatched too: the
// state itself, and whether anything was ever applied, since whoever comes then
// has missed it.
func (o *observer) state(next, before view.Sync, at int64) {
	if o == nil {
		return
	}
	lasting := next.State != before.State || next.Connected != before.Connected || (next.LastEvent == 0) != (before.LastEvent == 0)
	before.LastEvent, before.LastSeq = next.LastEvent, next.LastSeq // the messages tell
	if !lasting && (next == before || !o.hub.Watched()) {
		return
	}
	body, err := encodeState(next)
	if err != nil {
		return // cannot be: words and numbers
	}
	o.hub.Publish(&recording.Record{Type: recording.TypeState, At: at, Pod: o.pod, Body: body})
}

// message publishes what came live; it may be nil.
func (o *observer) message(it *item) {
	if it != nil && it.frames != nil && o.watched() {
		o.hub.Publish(&recording.Record{Type: recording.TypeFrame, At: it.at, Pod: o.pod, Parts: it.frames})
	}
}

// gap tells that n batches before it did not come.
func (o *observer) gap(n uint64, it *item) {
	if n > 0 && o.watched() {
		from, to := it.seq-n, it.seq-1
		o.notice(it.at, recording.Notice{Kind: recording.Gap, Count: n, FromSeq: &from, ToSeq: &to})
	}
}

// overflow tells of batches that our own queue could not hold.
func (o *observer) overflow(it *item) {
	if o.watched() {
		to := it.last
		o.notice(it.at, recording.Notice{Kind: recording.Dropped, Count: it.dropped, ToSeq: &to, Why: "the index did not keep up"})
	}
}

// purged tells that the member's blocks were dropped; sure, that the engine has
// none of them.
func (o *observer) purged(cause, why string, sure bool, at int64) {
	if !o.watched() {
		return
	}
	kind := recording.Partial
	if restarts[cause] {
		kind = recording.Restart
	}
	if why == "" {
		why = purgeText[cause]
	}
	o.notice(at, recording.Notice{Kind: kind, Why: why, Purged: true, Emptied: sure})
}

// purgeText says in words what the causes mean.
var purgeText = map[string]string{
	purgeRestart:   "numbers went back: a new publisher",
	purgeIdentity:  "the engine's process is another one",
	purgeReconnect: "reconnected: the engine may be another one",
	purgeGap:       "the missing batches cannot be had",
	purgeHistory:   "history is older than the replay buffer",
	purgeRetry:     "starting over with a full replay",
	purgeMismatch:  "the replay port is another publisher's",
	purgeInflated:  "more blocks than the engine has: removals were lost unseen",
}

// asked marks the begin of a replay, answer a batch it brought, answered its end.
func (o *observer) asked(at int64) {
	if o != nil {
		o.recovered.count, o.recovered.began = 0, at
	}
}

func (o *observer) answer(seq uint64, frames [][]byte, at int64) {
	if o == nil {
		return
	}
	r := &o.recovered
	if r.count == 0 {
		r.first = seq
	}
	r.count, r.last = r.count+1, seq
	if o.watched() {
		o.hub.Publish(&recording.Record{Type: recording.TypeReplay, At: at, Pod: o.pod, Parts: frames})
	}
}

func (o *observer) answered(end replayEnd, why string, at int64) {
	if !o.watched() {
		return
	}
	r := &o.recovered
	n := recording.Notice{
		Kind: recording.Replay, Count: r.count, Outcome: end.String(), Why: why, TookMs: (at - r.began) / 1e6,
	}
	if r.count > 0 {
		first, last := r.first, r.last
		n.FromSeq, n.ToSeq = &first, &last
	}
	o.notice(at, n)
}
