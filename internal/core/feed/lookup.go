package feed

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
)

// LookupWords says why a name has no address here; ok is false where err is about
// something else. Our own port, which resolvers quote, is left out: the same failure
// reads the same.
func LookupWords(err error) (words string, ok bool) {
	var e *net.DNSError
	if !errors.As(err, &e) {
		return "", false
	}
	name := printable(e.Name, 100)
	if e.IsNotFound {
		return "no such host: " + name, true
	}
	if e.Server != "" {
		name += " at " + e.Server
	}
	why := e.Err[strings.LastIndex(e.Err, ": ")+1:]
	if e.IsTimeout {
		why = "no answer in time"
	}
	return "lookup of " + name + ": " + strings.TrimSpace(why), true
}

// said is an error's own text, but for a lookup's.
func said(err error) string {
	if words, ok := LookupWords(err); ok {
		return words
	}
	return err.Error()
}

// lookup is the looking up of a request's name. Of a request whose time is over
// meanwhile, net/http says only that: the name server would never be looked at.
type lookup struct {
	host    string
	pending atomic.Bool // its end may come from a connection that outlives the request
}

// traced is the request with its lookup traced; one of an address has none.
func traced(req *http.Request) (*http.Request, *lookup) {
	l := &lookup{host: req.URL.Hostname()}
	if _, err := netip.ParseAddr(l.host); err == nil {
		return req, l
	}
	return req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { l.pending.Store(true) },
		DNSDone: func(d httptrace.DNSDoneInfo) {
			if d.Err == nil { // one that is given up with the request is its cause
				l.pending.Store(false)
			}
		},
	})), l
}

// blame puts the name into the error of a client whose time was over in the lookup.
func (l *lookup) blame(err error) error {
	call, ok := errors.AsType[*url.Error](err)
	if !ok || !l.pending.Load() || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &url.Error{Op: call.Op, URL: call.URL, Err: &net.DNSError{UnwrapErr: call.Err, Err: call.Err.Error(), Name: l.host, IsTimeout: true}}
}
