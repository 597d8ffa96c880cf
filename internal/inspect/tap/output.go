package tap

import (
	"context"
	"errors"
	"io"
	"time"
)

const (
	// outputBytes is what is gathered for a pipe before it is written, outputEvery
	// how long at most it waits for that.
	outputBytes = 64 << 10
	outputEvery = 100 * time.Millisecond
	// lastWords is how long a reader that has stopped reading holds up the end.
	lastWords = time.Second
)

// output writes on a goroutine of its own, so that a reader who stands still keeps
// tap neither from ending nor from answering signals. One goroutine calls it.
type output struct {
	w      io.Writer
	buf    []byte
	jobs   chan []byte
	failed chan error // capacity 1
	done   chan struct{}
}

func newOutput(w io.Writer) *output {
	o := &output{w: w, jobs: make(chan []byte), failed: make(chan error, 1), done: make(chan struct{})}
	go o.run()
	return o
}

func (o *output) run() {
	defer close(o.done)
	for b := range o.jobs {
		if _, err := o.w.Write(b); err != nil {
			o.failed <- err
			for range o.jobs { // nobody reads on
			}
			return
		}
	}
}

// Write gathers. It never fails; hand does.
func (o *output) Write(b []byte) (int, error) {
	o.buf = append(o.buf, b...)
	return len(b), nil
}

// full reports that it is time to hand over.
func (o *output) full() bool { return len(o.buf) >= outputBytes }

// hand gives what was gathered to the writer, for which it may have to wait. It
// returns the error of an earlier write.
func (o *output) hand(ctx context.Context) error {
	if len(o.buf) == 0 {
		select {
		case err := <-o.failed:
			return err
		default:
			return nil
		}
	}
	select {
	case err := <-o.failed:
		return err
	case o.jobs <- o.buf:
		o.buf = nil
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close writes the rest, unless its reader stands still.
func (o *output) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	err := o.hand(ctx)
	close(o.jobs)
	select {
	case <-o.done:
	case <-ctx.Done():
		return errors.Join(err, ctx.Err())
	}
	select {
	case late := <-o.failed:
		return late
	default:
		return err
	}
}
