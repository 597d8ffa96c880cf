package feed

import (
	"context"

	"github.com/go-zeromq/zmq4"
)

// opener makes the next connection to one publisher, or waits for it.
type opener interface {
	open(ctx context.Context) (FrameSource, error)
	// passive reports that the publisher dials us: nothing to back off from.
	passive() bool
}

// Dial connects to a publisher that binds and subscribes to all it sends. The
// source dies with ctx.
func Dial(ctx context.Context, endpoint string, lim Limits) (FrameSource, error) {
	return dialled{dialer{lim: lim}, endpoint}.open(ctx)
}

// dialled opens connections to a publisher that binds.
type dialled struct {
	dialer   dialer
	endpoint string
}

func (d dialled) open(ctx context.Context) (FrameSource, error) {
	l, err := d.dialer.dial(ctx, d.endpoint, zmq4.Sub)
	if err != nil {
		return nil, err
	}
	// All topics: the topic is the engine's choice and only a hint.
	if err := l.subscribe(""); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (dialled) passive() bool { return false }

// once opens one connection that is there already, and none after it.
type once struct{ src FrameSource }

func (o *once) open(ctx context.Context) (FrameSource, error) {
	if src := o.src; src != nil {
		o.src = nil
		return src, nil
	}
	<-ctx.Done()
	return nil, &linkError{FaultClosed, ctx.Err()}
}

func (*once) passive() bool { return true }
