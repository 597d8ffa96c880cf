package inspect

import (
	"bytes"
	"io"
	"net/http"
)

// NewLocalClient returns a client of an admin API in this process; name stands for
// its address in messages.
func NewLocalClient(name string, api http.Handler) *Client {
	return &Client{addr: name, http: &http.Client{Transport: local{api}}}
}

// local hands requests to a handler without a connection in between.
type local struct{ api http.Handler }

func (l local) RoundTrip(r *http.Request) (*http.Response, error) {
	a := &localAnswer{header: http.Header{}, status: http.StatusOK}
	l.api.ServeHTTP(a, r)
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Header: a.header, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(&a.body), ContentLength: int64(a.body.Len()),
	}, nil
}

// localAnswer gathers what a handler writes.
type localAnswer struct {
	header http.Header
	status int
	begun  bool
	body   bytes.Buffer
}

func (a *localAnswer) Header() http.Header { return a.header }

func (a *localAnswer) WriteHeader(status int) {
	if !a.begun {
		a.status, a.begun = status, true
	}
}

func (a *localAnswer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}
