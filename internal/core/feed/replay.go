package feed

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/go-zeromq/zmq4"
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
	// replayLimit ends a replay that never ends by itself.
	replayLimit = time.Minute
)

// endMarker is the sequence frame of the last answer.
var endMarker = bytes.Repeat([]byte{0xff}, 8)

// replayer fetches missed batches from an engine's replay port. One is shared by
// the whole fleet.
type replayer struct {
	dialer dialer
	slots  chan struct{}
}

func newReplayer(d dialer) *replayer {
	return &replayer{dialer: d, slots: make(chan struct{}, replaysAtOnce)}
}

// reply takes one replayed batch; first marks the first answer to a request. It
// returns the number wanted next, and false when this batch left a hole.
type reply func(seq uint64, payload []byte, first bool) (next uint64, ok bool)

// run asks for batches from `from` on until take wants number until, or until
// the end marker when until is 0. The stream loses messages, so it asks again
// from what is missing for as long as each round makes progress.
func (r *replayer) run(ctx context.Context, endpoint string, from, until uint64, take reply) (end replayEnd, rounds uint64, err error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return replayAborted, 0, ctx.Err()
	}
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, replayLimit)
	defer cancel()
	moved := false
	for stuck := 0; stuck < replayStuck; {
		next, ending, e := r.round(ctx, endpoint, from, until, take)
		rounds++
		switch {
		case parent.Err() != nil:
			return replayAborted, rounds, parent.Err()
		case ctx.Err() != nil:
			return replayFailed, rounds, errors.New("replay does not end")
		case ending == roundReached,
			ending == roundEnd && until == 0,
			// The marker was lost, and there is nothing behind what we have.
			ending == roundSilent && until == 0 && moved:
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

// roundEnd is how one request ended.
type ending uint8

const (
	roundBroken  ending = iota // connection failed, a hole, or silence behind some answers
	roundSilent                // no answer at all
	roundEnd                   // end marker
	roundReached               // got what was wanted
)

// round makes one request and takes the answers up to the first hole.
func (r *replayer) round(ctx context.Context, endpoint string, from, until uint64, take reply) (next uint64, end ending, err error) {
	next = from
	l, err := r.dialer.dial(ctx, endpoint, zmq4.Dealer)
	if err != nil {
		return next, roundBroken, err
	}
	defer l.Close()
	// The empty delimiter frame is what a REQ socket would add; without it the
	// engine does not answer.
	if err := l.send(nil, binary.BigEndian.AppendUint64(nil, from)); err != nil {
		return next, roundBroken, err
	}
	l.silence(replayFirst)
	for first := true; ; {
		frames, err := l.Recv()
		if err != nil {
			if first && faultOf(err) == FaultTimeout {
				return next, roundSilent, errors.New("no answer")
			}
			return next, roundBroken, err
		}
		if frames == nil { // a command
			continue
		}
		l.silence(replayQuiet)
		// From the end, because older engines leave out the topic.
		if len(frames) < 2 || len(frames[len(frames)-2]) != 8 {
			return next, roundBroken, fmt.Errorf("answer of %d frames without a sequence number", len(frames))
		}
		number, payload := frames[len(frames)-2], frames[len(frames)-1]
		if bytes.Equal(number, endMarker) {
			return next, roundEnd, nil
		}
		var ok bool
		next, ok = take(binary.BigEndian.Uint64(number), payload, first)
		first = false
		switch {
		case !ok:
			return next, roundBroken, nil
		case until > 0 && next >= until:
			return next, roundReached, nil
		}
	}
}
