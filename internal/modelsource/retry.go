package modelsource

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// errSilent ends tries that got no answer within Patience.
var errSilent = errors.New("no answer came")

// retry repeats what may pass, with waits that double, until Patience has run out. do
// calls answered once the hub has said something: what it then sends may take its time.
func (s *Settings) retry(ctx context.Context, do func(ctx context.Context, answered func()) error) error {
	left, wait := s.Retries, s.Wait
	if left == 0 {
		left = 3
	}
	if wait == 0 {
		wait = 500 * time.Millisecond
	}
	var naming atomic.Bool
	ctx, giveUp := context.WithCancelCause(traced(ctx, &naming))
	defer giveUp(nil)
	patience := s.Patience
	if patience <= 0 {
		patience = math.MaxInt64
	}
	watch := time.AfterFunc(patience, func() { giveUp(errSilent) })
	defer watch.Stop()
	heard := false
	answered := func() { heard = true; watch.Stop() }
	var last error // of the try before
	for ; ; left-- {
		err := do(ctx, answered)
		if err != nil && context.Cause(ctx) == errSilent {
			return s.silent(last, naming.Load())
		}
		if heard { // the next try is a new question
			heard = false
			watch.Reset(patience)
		}
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // of this try alone
			err = &Error{Kind: Unreachable, What: "the hub at " + s.Endpoint, Why: "it takes too long to answer", Hint: unreachableHint, Err: err}
		}
		var e *Error
		if err == nil || left <= 0 || !errors.As(err, &e) || e.Kind != Unreachable && e.Kind != Damaged || final(err) || ctx.Err() != nil {
			return err
		}
		last = err
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			if context.Cause(ctx) == errSilent {
				return s.silent(last, false)
			}
			return err
		case <-t.C:
		}
		wait *= 2
	}
}

// final reports whether the next try would be answered in the same way.
func final(err error) bool {
	var name *net.DNSError
	return errors.As(err, &name) && name.IsNotFound ||
		errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError))
}

// traced notes whether a name is being looked up: who waited for nothing is told where.
func traced(ctx context.Context, naming *atomic.Bool) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { naming.Store(true) },
		DNSDone:  func(httptrace.DNSDoneInfo) { naming.Store(false) },
	})
}

// silent is the error about a hub that gave no answer in time; last is what the tries
// before the last one ended with.
func (s *Settings) silent(last error, naming bool) error {
	why := fmt.Sprintf("no answer came in %v", s.Patience)
	var e *Error
	switch {
	case naming:
		why = fmt.Sprintf("no name server told its address in %v", s.Patience)
	case errors.As(last, &e):
		why += ": " + e.Why
	}
	return &Error{Kind: Unreachable, What: "the hub at " + s.Endpoint + " cannot be reached", Why: why, Hint: unreachableHint, Err: errSilent}
}
