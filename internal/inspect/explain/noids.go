package explain

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/inspect"
)

// noIDs says why an engine told no token ids, in words rather than in those of the
// libraries below, which quote calls and paths.
func noIDs(ctx context.Context, patience time.Duration, engine, base string, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return &inspect.Error{Kind: inspect.Interrupted, Code: "E_INTERRUPTED", What: "interrupted", Err: err}
	}
	e := &inspect.Error{
		Kind: inspect.Unreachable, Code: "E_ENGINE", What: engine + " tells no token ids",
		Hint: "try: --compare-engine with the URL of another engine that serves " + base, Err: err,
	}
	if met, why := unreachable(patience, err); met != "" {
		e.What, e.Why = fmt.Sprintf("cannot reach the engine at %s: %s", engine, met), why
		return e
	}
	switch {
	case errors.Is(err, feed.ErrNotOffered):
		e.Why = "it offers neither render nor /tokenize for " + base
		e.Hint = "it has to be an engine that serves " + base + "; 'eppctl check' says what each pod offers"
	case errors.Is(err, tokenizer.ErrMedia):
		e.Why, e.Hint = "the request has an image, sound or video, and it offers no render endpoint, which alone knows what becomes of them", ""
	case errors.Is(err, tokenizer.ErrShape):
		e.Why, e.Hint = "it offers no render endpoint, and /tokenize has no form for such a request", ""
	case errors.Is(err, feed.ErrRefused):
		e.Why, e.Hint = "it refuses the request", "the engine's log says what of the request it does not take"
	default:
		e.Why = err.Error()
	}
	return e
}

// unreachable says what kept an engine from answering at all; met is "" if it did answer.
func unreachable(patience time.Duration, err error) (met, why string) {
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	var op *net.OpError
	var timeout net.Error
	if met, why, ok := inspect.Unresolved(err); ok {
		return met, why
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused", "no engine is running there, or its port differs"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("no answer in %v", patience), "it hangs or is overloaded, or something on the way drops what is sent there"
	case errors.As(err, &certificate):
		return "its certificate is not trusted", last(certificate).Error()
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"): // net/http has no error of its own for it
		return "it does not speak TLS", "an engine without TLS has a URL that begins with http://"
	case errors.Is(err, feed.ErrNotHTTP):
		return "it answers with something that is not HTTP", "what listens there is no engine, or speaks TLS, whose URL begins with https://"
	case errors.As(err, &op):
		return last(op).Error(), "the connection failed"
	}
	return "", ""
}

// last is the innermost error, without the calls and addresses around it.
func last(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}
