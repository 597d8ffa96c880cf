package feed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/eppctl/eppctl/internal/core/event"
)

const (
	// replaysAtOnce bounds the replays over the whole fleet: replicas of eppctl
	// that start together would otherwise stall every engine's live events.
	replaysAtOnce = 8
	// replayQuiet is the silence after which an end marker counts as lost:
	// libzmq's ROUTER drops above its high-water mark of 1000, the marker too.
	replayQuiet = 500 * time.Millisecond
	// replayFirst is the same for the first answer. vLLM polls its replay socket
	// between waits of 100 ms for a batch.
	replayFirst = time.Second
	// replayStuck is the number of rounds in a row without progress that end it.
	replayStuck = 3
	// replayIdle ends a round that brings messages but none that is wanted: two
	// of the longest silences.
	replayIdle = 2 * replayFirst
	// slotWait is how long a replay waits for its turn. The longest one measured
	// took 1.1 s; eight that take longer are stuck.
	slotWait = 10 * time.Second
	// replayLimit ends a replay that never ends by itself.
	replayLimit = time.Minute
)

// replayer fetches missed batches from an engine's replay port. One is shared by
// the whole fleet.
type replayer struct {
	dialer dialer
	slots  chan struct{}
}

func newReplayer(d dialer) *replayer {
	return &replayer{dialer: d, slots: make(chan struct{}, replaysAtOnce)}
}

// replayed is one batch of a replay and the message it came in.
type replayed struct {
	seq     uint64
	payload []byte
	frames  [][]byte
}

// taker takes what a replay brings, on the replay's goroutine.
type taker interface {
	// take takes a batch; first marks the first answer to a request.
	take(a replayed, first bool) verdict
	// over hears that a round has ended, and reports whether all has come, and
	// which number to ask for next. moved says that a round before brought something.
	over(e ending, moved bool) (next uint64, all bool)
}

// verdict is what a taker says of a batch.
type verdict struct {
	next uint64 // the number wanted now
	do   replayDo
	why  string // of refused
}

type replayDo uint8

const (
	goOn    replayDo = iota
	known            // it was had before
	again            // it left a hole
	enough           // all has come
	refused          // neither this nor what follows is of use
)

// run asks for batches from `from` on until the taker has all it wants. The
// stream loses messages, so it asks again from what is missing for as long as each
// round makes progress.
func (r *replayer) run(ctx context.Context, endpoint string, from uint64, t taker) (end replayEnd, rounds uint64, err error) {
	if err := r.enter(ctx); err != nil {
		if ctx.Err() != nil {
			return replayAborted, 0, ctx.Err()
		}
		return replayCrowded, 0, err
	}
	defer func() { <-r.slots }()
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, replayLimit)
	defer cancel()
	moved := false
	for stuck := 0; stuck < replayStuck; {
		ending, e := r.round(ctx, endpoint, from, t)
		rounds++
		next, all := from, false
		if ctx.Err() == nil {
			next, all = t.over(ending, moved)
		}
		switch {
		case parent.Err() != nil:
			return replayAborted, rounds, parent.Err()
		case ctx.Err() != nil:
			return replayFailed, rounds, errors.New("replay does not end")
		case ending == roundRefused:
			return replayFailed, rounds, e
		case all:
			return replayFilled, rounds, nil
		}
		err = e
		if next != from {
			from, moved, stuck = next, true, 0
			continue
		}
		stuck++
		select { // the engine may be about to record what it has just published
		case <-time.After(replayQuiet / 5):
		case <-ctx.Done():
		}
	}
	if err == nil {
		err = fmt.Errorf("batch %d is not in the replay", from)
	}
	return replayFailed, rounds, fmt.Errorf("replay: %w", err)
}

// enter takes a slot.
func (r *replayer) enter(ctx context.Context) error {
	late := time.NewTimer(slotWait)
	defer late.Stop()
	select {
	case r.slots <- struct{}{}:
		return nil
	case <-late.C:
		return fmt.Errorf("replay: %d others run, and none ended in %v", replaysAtOnce, slotWait)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ending is how one request ended.
type ending uint8

const (
	roundBroken  ending = iota // connection failed, a hole, or silence behind something new
	roundSilent                // silence, and nothing new before it
	roundEnd                   // end marker
	roundReached               // got what was wanted
	roundRefused               // what came is of no use
)

// round makes one request and takes the answers up to the first hole.
func (r *replayer) round(ctx context.Context, endpoint string, from uint64, t taker) (ending, error) {
	l, err := r.dialer.dial(ctx, endpoint, zmq4.Dealer)
	if err != nil {
		return roundBroken, err
	}
	defer l.Close()
	return ask(l, from, t)
}

// ask is a round over a connection.
func ask(l *link, from uint64, t taker) (ending, error) {
	// The empty delimiter frame is what a REQ socket would add; without it the
	// engine does not answer.
	if err := l.send(nil, binary.BigEndian.AppendUint64(nil, from)); err != nil {
		return roundBroken, err
	}
	l.silence(replayFirst)
	next, progress, fresh := from, time.Now(), false
	for first := true; ; {
		frames, err := l.Recv()
		if err != nil {
			if !fresh && faultOf(err) == FaultTimeout {
				return roundSilent, errors.New("no answer")
			}
			return roundBroken, err
		}
		if time.Since(progress) > replayIdle {
			return roundBroken, errors.New("answers without end, and none that is wanted")
		}
		if frames == nil { // a command
			continue
		}
		l.silence(replayQuiet)
		_, seq, payload, err := event.ParseReply(frames)
		if err != nil {
			return roundBroken, err
		}
		if seq == event.ReplayEnd {
			return roundEnd, nil
		}
		v := t.take(replayed{seq, payload, frames}, first)
		first = false
		switch v.do {
		case again:
			return roundBroken, nil
		case enough:
			return roundReached, nil
		case refused:
			return roundRefused, errors.New(v.why)
		case goOn:
			fresh = true
		}
		if v.next != next {
			next, progress = v.next, time.Now()
		}
	}
}
