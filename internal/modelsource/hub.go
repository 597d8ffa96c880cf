package modelsource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	maxListing   = 16 << 20 // a model's description lists some thousands of files at most
	maxRedirects = 5
	defaultStall = 30 * time.Second
)

// listing is what of the hub's description of a revision is used.
type listing struct {
	Commit string `json:"sha"`
	Files  []struct {
		Name string `json:"rfilename"`
	} `json:"siblings"`
}

// list asks which files a revision has.
func (s *Settings) list(ctx context.Context, name, revision string) (*listing, error) {
	l := &listing{}
	address := s.Endpoint + "/api/models/" + name + "/revision/" + url.PathEscape(revision)
	if s.Asking != nil {
		s.Asking(s.Endpoint)
	}
	err := s.retry(ctx, func(ctx context.Context, _ func()) error {
		ctx, cancel := context.WithTimeout(ctx, s.stall())
		defer cancel()
		resp, err := s.get(ctx, address, nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return s.refusal(resp, name, revision)
		}
		b, err := io.ReadAll(io.LimitReader(resp.Body, maxListing+1))
		if err != nil {
			return s.broken(err)
		}
		*l = listing{}
		if len(b) > maxListing || json.Unmarshal(b, l) != nil || !isCommit(l.Commit) {
			return &Error{
				Kind: Damaged, What: "the description of " + name + " by " + s.Endpoint, Why: "it is not what a hub answers",
				Hint: "check HF_ENDPOINT, and proxies on the way",
			}
		}
		return nil
	})
	return l, err
}

// get sends a request with the token, and follows redirects without it when they lead
// to another host, until enough says that what a redirect tells is enough. What the
// hub itself says of the content is kept: the other host's own etag is another.
func (s *Settings) get(ctx context.Context, address string, enough func(*http.Response) bool) (*http.Response, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, &Error{Kind: Invalid, What: "HF_ENDPOINT", Why: err.Error(), Err: err}
	}
	home, said := at, http.Header{}
	for range maxRedirects + 1 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
		if err != nil {
			return nil, &Error{Kind: Invalid, What: "HF_ENDPOINT", Why: err.Error(), Err: err}
		}
		req.Header.Set("User-Agent", "eppctl")
		req.Header.Set("Accept-Encoding", "identity") // sizes and hashes are those of the file
		if s.Token != "" && at.Host == home.Host && at.Scheme == home.Scheme {
			req.Header.Set("Authorization", "Bearer "+s.Token)
		}
		resp, err := s.client().Do(req)
		if err != nil {
			return nil, s.broken(err)
		}
		for _, key := range []string{"X-Linked-Etag", "X-Linked-Size"} {
			if v := resp.Header.Get(key); v != "" && at.Host == home.Host {
				said.Set(key, v)
			}
			resp.Header.Del(key)
			if v := said.Get(key); v != "" {
				resp.Header.Set(key, v)
			}
		}
		if resp.StatusCode < 300 || resp.StatusCode > 399 || enough != nil && enough(resp) {
			return resp, nil
		}
		resp.Body.Close()
		next, err := at.Parse(resp.Header.Get("Location"))
		if err != nil || next.Scheme != "https" && next.Scheme != at.Scheme || next.Host == "" {
			return nil, &Error{Kind: Damaged, What: "a redirect of " + at.Host, Why: "it leads nowhere, or from https to http"}
		}
		at = next
	}
	return nil, &Error{Kind: Damaged, What: "redirects of " + home.Host, Why: fmt.Sprintf("there are more than %d", maxRedirects)}
}

func (s *Settings) stall() time.Duration {
	if s.Stall > 0 {
		return s.Stall
	}
	return defaultStall
}

// client is the one given, without following redirects itself.
func (s *Settings) client() *http.Client {
	c := http.Client{}
	if s.HTTP != nil {
		c = *s.HTTP
	} else {
		c.Transport = transport
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// maxHeaders caps the headers of an answer, of which net/http would take 10 MiB. The
// longest is where a redirect leads, and servers bound that to 8 KiB.
const maxHeaders = 64 << 10

// transport keeps no connection: models are fetched once in a long time.
var transport = &http.Transport{
	Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true,
	TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: defaultStall,
	MaxResponseHeaderBytes: maxHeaders,
}

// broken is a connection that was not made or broke. The error of package http holds
// the address, which of a redirect is a signed one.
func (s *Settings) broken(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	name := errors.As(err, new(*net.DNSError)) // its time-out is one of the system's
	if !name && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return err
	}
	return &Error{
		Kind: Unreachable, What: "the hub at " + s.Endpoint + " cannot be reached", Why: clip(err.Error()),
		Hint: unreachableHint, Err: err,
	}
}

const unreachableHint = "try: a folder with the model's files, HF_HOME of a cache that has them (HF_HUB_OFFLINE=1 asks nobody), or HF_ENDPOINT with a mirror"

// refusal makes an error of a response other than 200. What the hub says in words
// stands in X-Error-Message.
func (s *Settings) refusal(resp *http.Response, name, revision string) error {
	what := "model " + name + " at " + revision
	said := clip(resp.Header.Get("X-Error-Message"))
	code := resp.Header.Get("X-Error-Code")
	page := s.Endpoint + "/" + name
	switch status := resp.StatusCode; {
	case code == "GatedRepo" && s.Token == "", status == http.StatusUnauthorized && s.Token == "":
		return &Error{
			Kind: Forbidden, What: what, Why: or(said, "the hub wants to know who asks; it says so too of models that do not exist"),
			Hint: "check the name; if it is gated, ask for access at " + page + " and set HF_TOKEN",
		}
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return &Error{
			Kind: Forbidden, What: what, Why: or(said, fmt.Sprintf("the hub refuses this token (HTTP status %d)", status)),
			Hint: "ask for access at " + page + ", and check that the token of HF_TOKEN is valid and may read it",
		}
	case code == "RevisionNotFound":
		return &Error{Kind: Missing, What: what, Why: "the model has no such revision", Hint: "branches, tags and commits: " + page + "/tree/main"}
	case status == http.StatusNotFound:
		return &Error{Kind: Missing, What: what, Why: or(said, "the hub has no such model"), Hint: "check the name at " + s.Endpoint}
	case status == http.StatusTooManyRequests, status >= 500, status == http.StatusRequestTimeout:
		return &Error{Kind: Unreachable, What: "the hub at " + s.Endpoint, Why: fmt.Sprintf("it answers with HTTP status %d", status), Hint: "try again later"}
	default:
		return &Error{Kind: Damaged, What: what, Why: fmt.Sprintf("the hub answers with HTTP status %d", status), Hint: "check HF_ENDPOINT"}
	}
}

func or(a, b string) string {
	if strings.TrimSpace(a) != "" {
		return a
	}
	return b
}
