package feed

import (
	"context"
	"time"
)

// begun is the one reading of the wall clock that every later time is counted
// from.
var begun = time.Now()

// Clock is the time by which everything in this process is stamped and aged:
// the wall clock as it was at start, moved on by the monotonic clock. A step of
// the wall clock (NTP, a resumed virtual machine, an operator) thus makes no
// sample stale, no index entry old and no request long; in exchange Clock may
// come to differ from the wall clock by the size of the step. Whoever compares
// an age with something the feed has stamped must use this clock too.
func Clock() time.Time { return reading(begun, time.Now()) }

// Now is Clock in nanoseconds since 1970.
func Now() int64 { return Clock().UnixNano() }

// reading moves start on to t. Sub sees the monotonic readings of the two and
// Add moves the wall reading by the same amount.
func reading(start, t time.Time) time.Time { return start.Add(t.Sub(start)) }

// sleep waits, or returns ctx's error as soon as that ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
