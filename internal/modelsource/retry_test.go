package modelsource

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// dead is a hub that nothing reaches, and how often it was tried.
type dead struct {
	err   error
	tries int
}

func (d *dead) RoundTrip(*http.Request) (*http.Response, error) {
	d.tries++
	return nil, d.err
}

// What was answered for good is not asked again, what may pass is.
func TestFinal(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for name, c := range map[string]struct {
		err   error
		tries int
	}{
		"no such host":        {dial(&net.DNSError{Err: "no such host", Name: "hub.test", IsNotFound: true}), 1},
		"a wrong certificate": {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, 1},
		"no TLS":              {tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, 1},
		"name server failed":  {dial(&net.DNSError{Err: "server misbehaving", Name: "hub.test", IsTemporary: true}), 4},
		"nobody listens":      {dial(errors.New("connection refused")), 4},
	} {
		d := &dead{err: c.err}
		s := &Settings{Cache: t.TempDir(), Endpoint: "https://hub.test", HTTP: &http.Client{Transport: d}, Wait: time.Microsecond}
		_, err := find(t, s, "acme/tiny", "")
		if kind, ok := kindOf(err); !ok || kind != Unreachable || d.tries != c.tries {
			t.Errorf("%s: %d tries instead of %d, %v", name, d.tries, c.tries, err)
		}
	}
}

// roundTrip is a hub without a network, so that time is the test's own.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// silence is waited for as long as the request is.
func silence(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// answer is a response of the hub; its body comes slowly.
func answer(r *http.Request, status int, etag, body string, slow time.Duration) (*http.Response, error) {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Etag": {etag}}, ContentLength: int64(len(body)),
		Body: io.NopCloser(&slowly{r.Context(), strings.NewReader(body), slow}),
	}, nil
}

type slowly struct {
	ctx context.Context
	io.Reader
	wait time.Duration
}

func (s *slowly) Read(p []byte) (int, error) {
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-time.After(s.wait):
	}
	return s.Reader.Read(p[:min(len(p), 8)])
}

const oneFile = `{"sha":"a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1","siblings":[{"rfilename":"tokenizer.json"}]}`

// A hub that says nothing, and a name server that does not, are waited for once
// Patience, and not once for each try. What comes slowly once the hub has answered is
// no silence.
func TestPatience(t *testing.T) {
	mute := &net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}}
	list := func(then roundTrip) roundTrip {
		return func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Path, "/api/") {
				return answer(r, 200, "", oneFile, 0)
			}
			return then(r)
		}
	}
	for name, c := range map[string]struct {
		hub  http.RoundTripper
		says string // "" = it is found
		took time.Duration
	}{
		"the name server": {&http.Transport{DialContext: mute.DialContext}, "no name server told its address in 9s; try: a folder with the model's files", 9 * time.Second},
		"the hub":         {roundTrip(silence), "no answer came in 9s; try: ", 9 * time.Second},
		"an endless list": {roundTrip(func(r *http.Request) (*http.Response, error) { return answer(r, 200, "", oneFile, 3*time.Second) }), "no answer came in 9s; try: ", 9 * time.Second},
		"between two tries": {roundTrip(func(r *http.Request) (*http.Response, error) { return answer(r, 503, "", "", 0) }),
			"no answer came in 9s: it answers with HTTP status 503; try: ", 9 * time.Second},
		"a file":                   {list(silence), "no answer came in 9s; try: ", 9 * time.Second},
		"a file that comes slowly": {list(func(r *http.Request) (*http.Response, error) { return answer(r, 200, "abc", "{}", 20*time.Second) }), "", 40 * time.Second},
		"a file that is cut, then silence": {list(func() roundTrip {
			cut := false
			return func(r *http.Request) (*http.Response, error) {
				if cut {
					return silence(r)
				}
				cut = true
				resp, err := answer(r, 200, "abc", "{}", 20*time.Second)
				resp.ContentLength = 3
				return resp, err
			}
		}()), "no answer came in 9s: 2 of 3 bytes came; try: ", 49 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				var asked []string
				s := &Settings{
					Cache: dir, Endpoint: "http://hub.test", HTTP: &http.Client{Transport: c.hub}, Patience: 9 * time.Second, Retries: 100,
					Asking: func(hub string) { asked = append(asked, hub) },
				}
				began := time.Now()
				_, err := s.Find(t.Context(), "acme/tiny", "")
				took := time.Since(began)
				time.Sleep(time.Minute) // package net's look-up goes on by itself for a while
				if took != c.took {
					t.Errorf("it took %v instead of %v", took, c.took)
				}
				kind, ok := kindOf(err)
				switch {
				case c.says == "" && err != nil, c.says != "" && (!ok || kind != Unreachable || !strings.Contains(err.Error(), c.says)):
					t.Errorf("%v; want %q in it", err, c.says)
				case !slices.Equal(asked, []string{"http://hub.test"}):
					t.Errorf("asked %v", asked)
				}
			})
		})
	}
}
