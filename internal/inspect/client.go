package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// DefaultAddr is where serve's admin API listens unless it is told otherwise.
const DefaultAddr = "127.0.0.1:9004"

// maxAnswer caps what is read from the admin API: a full Explanation of 1024
// pods stays below 8 MiB.
const maxAnswer = 64 << 20

// Client talks to the admin API of one serve. It may be used from any goroutine.
type Client struct {
	addr string
	http *http.Client
}

// Timeouts bound a call; zero values mean 2 s for the dial and 5 s in all.
type Timeouts struct{ Dial, Total time.Duration }

// NewClient returns a client of the API at addr, host:port or unix:/path.
func NewClient(addr string, t Timeouts) (*Client, error) {
	network, target := "tcp", addr
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, target = "unix", strings.TrimPrefix(path, "//")
	} else if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, &Error{
			Kind: Usage, Code: "E_USAGE", What: fmt.Sprintf("--addr: found %q; expected HOST:PORT or unix:/PATH", addr),
			Hint: "try: --addr " + DefaultAddr, Err: err,
		}
	}
	if t.Dial <= 0 {
		t.Dial = 2 * time.Second
	}
	if t.Total <= 0 {
		t.Total = 5 * time.Second
	}
	dialer := net.Dialer{Timeout: t.Dial}
	transport := &http.Transport{
		Proxy:             nil, // an admin port on loopback is never behind one
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, target)
		},
	}
	return &Client{addr: addr, http: &http.Client{Transport: transport, Timeout: t.Total}}, nil
}

// Request is what is to be explained: a client's request as Envoy would show it
// to serve.
type Request struct {
	Path   string // "/v1/chat/completions"
	Body   []byte // verbatim
	Header http.Header
}

// subsetHeader carries the gateway's endpoint hint to the admin API; on the
// ext_proc stream the same key stands in the metadata.
const subsetHeader = "x-gateway-destination-endpoint-subset"

// SetSubset restricts the pick as the gateway's hint would.
func (r *Request) SetSubset(endpoints string) {
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set(subsetHeader, endpoints)
}

// Explain returns the Explanation of a request, as the server wrote it.
func (c *Client) Explain(ctx context.Context, r Request) ([]byte, error) {
	return c.do(ctx, http.MethodPost, "/v1/explain?path="+url.QueryEscape(r.Path), r.Body, r.Header)
}

// Recent returns the Explanation of a pick that serve still remembers.
func (c *Client) Recent(ctx context.Context, requestID string) ([]byte, error) {
	return c.do(ctx, http.MethodGet, "/v1/explain/"+url.PathEscape(requestID), nil, nil)
}

// Name is one name to complete, with the state of what it names.
type Name struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

// Names lists the names of a kind: "pod" or "model".
func (c *Client) Names(ctx context.Context, kind string) ([]Name, error) {
	var answer struct {
		Names []Name `json:"names"`
	}
	b, err := c.do(ctx, http.MethodGet, "/v1/names?kind="+url.QueryEscape(kind), nil, nil)
	if err == nil {
		err = json.Unmarshal(b, &answer)
	}
	return answer.Names, err
}

// Pick is one line of the list of recent picks.
type Pick struct {
	RequestID string  `json:"request_id"`
	At        string  `json:"at"`
	Model     string  `json:"model"`
	Pod       *string `json:"pod"`
}

// Picks lists the latest picks, newest first.
func (c *Client) Picks(ctx context.Context, limit int) ([]Pick, error) {
	var answer struct {
		Picks []Pick `json:"picks"`
	}
	b, err := c.do(ctx, http.MethodGet, "/v1/picks?limit="+strconv.Itoa(limit), nil, nil)
	if err == nil {
		err = json.Unmarshal(b, &answer)
	}
	return answer.Picks, err
}

// Pod is a pod's name, address and state.
type Pod struct {
	Name  string `json:"name"`
	Addr  string `json:"addr"`
	State string `json:"state"`
}

// Pods lists the fleet, as far as one page of the API goes.
func (c *Client) Pods(ctx context.Context) ([]Pod, error) {
	var answer struct {
		Pods []Pod `json:"pods"`
	}
	b, err := c.do(ctx, http.MethodGet, "/v1/state", nil, nil)
	if err == nil {
		err = json.Unmarshal(b, &answer)
	}
	return answer.Pods, err
}

// do makes one call and returns the body of a 200.
func (c *Client) do(ctx context.Context, method, path string, body []byte, header http.Header) ([]byte, error) {
	// The Host is a fixed word: serve turns away names it does not know.
	req, err := http.NewRequestWithContext(ctx, method, "http://eppctl"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if len(b) > maxAnswer {
		return nil, &Error{Kind: Failed, Code: "E_ANSWER", What: fmt.Sprintf("the answer of %s is larger than %d MiB", c.addr, maxAnswer>>20)}
	}
	if resp.StatusCode != http.StatusOK {
		return nil, c.refused(resp, b)
	}
	return b, nil
}

// unreachable names what kept a call from being answered.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if context.Cause(ctx) != nil && errors.Is(ctx.Err(), context.Canceled) {
		return &Error{Kind: Interrupted, Code: "E_INTERRUPTED", What: "interrupted", Err: err}
	}
	e := &Error{
		Kind: Unreachable, Code: "E_CONNECT", Err: err,
		Why: "serve is not running here, or its admin port differs", Hint: "try: --addr HOST:PORT, or --addr unix:/PATH",
	}
	var netErr net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		e.What = "connection refused"
	case errors.Is(err, os.ErrNotExist):
		e.What, e.Why = "no such socket", "serve is not running here, or listens elsewhere"
	case errors.Is(err, os.ErrPermission):
		e.What, e.Why, e.Hint = "permission denied", "the socket belongs to another user", "try: run as the user of serve"
	case errors.As(err, &netErr) && netErr.Timeout():
		e.What, e.Why, e.Hint = "no answer in time", "serve hangs, or something else listens there", "try: --timeout 30s"
	default:
		var urlErr *url.Error
		if errors.As(err, &urlErr) {
			err = urlErr.Err
		}
		e.What = err.Error()
	}
	e.What = fmt.Sprintf("cannot reach serve at %s: %s", c.addr, e.What)
	return e
}

// refused reads the error object of an answer: the admin API's own, or the one
// that serve would have sent to the client.
func (c *Client) refused(resp *http.Response, body []byte) error {
	var own struct{ Kind, Code, Message, Hint string }
	var client struct {
		Error struct{ Message, Type, Code string }
	}
	_ = json.Unmarshal(body, &own)    // a body that is neither leaves both empty
	_ = json.Unmarshal(body, &client) //
	switch {
	case own.Kind == "Error":
		e := &Error{Kind: Failed, Code: own.Code, What: own.Message, Hint: own.Hint}
		if resp.StatusCode == http.StatusNotFound {
			e.Kind = Negative
		}
		return e
	case client.Error.Message != "":
		return &Error{
			Kind: Negative, Code: "E_REFUSED",
			What: fmt.Sprintf("serve refuses this request with %d %s", resp.StatusCode, client.Error.Code), Why: client.Error.Message,
		}
	}
	return &Error{
		Kind: Failed, Code: "E_ANSWER", What: fmt.Sprintf("%s answered %s", c.addr, resp.Status),
		Why: "what listens there is not the admin API of eppctl serve", Hint: "try: --addr HOST:PORT",
	}
}
