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
	flag string // see Timeouts
	http *http.Client
}

// Timeouts bound a call; zero values mean 2 s for the dial and 5 s in all.
type Timeouts struct {
	Dial, Total time.Duration
	// Flag names Total to whoever waited in vain, such as "--timeout"; "" = it has none.
	Flag string
}

// NewClient returns a client of the API at addr, host:port or unix:/path.
func NewClient(addr string, t Timeouts) (*Client, error) {
	network, target := "tcp", addr
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, target = "unix", strings.TrimPrefix(path, "//")
	} else if err := hostPort(addr); err != nil {
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
		// The answers that do not end begin at once as well.
		ResponseHeaderTimeout: t.Total,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			nc, err := dialer.DialContext(ctx, network, target)
			if err != nil {
				return nil, err
			}
			return newAskFirst(nc), nil
		},
	}
	return &Client{addr: addr, flag: t.Flag, http: &http.Client{
		Transport: transport, Timeout: t.Total,
		// The API redirects nobody.
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
	}}, nil
}

var errRedirect = errors.New("it redirects")

// hostPort refuses what is no HOST:PORT.
func hostPort(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		if n, e := strconv.ParseUint(port, 10, 16); e != nil || n == 0 {
			err = fmt.Errorf("port %q is not 1 to 65535", port)
		}
	}
	return err
}

// Request is what is to be explained: a client's request as Envoy would show it
// to serve.
type Request struct {
	Path   string // "/v1/chat/completions"
	Body   []byte // verbatim
	Header http.Header
	// Tokens asks for the token ids of the prompt too.
	Tokens bool
	Suppose
}

// Suppose is what a question supposes of the decision.
type Suppose struct {
	Inputs  []string // POD.FIELD=VALUE
	Weights []string // KEY=VALUE
	Without []string // pods
}

// Empty reports whether nothing is supposed.
func (s *Suppose) Empty() bool { return len(s.Inputs)+len(s.Weights)+len(s.Without) == 0 }

func (s *Suppose) query(q url.Values) {
	for key, list := range map[string][]string{"set": s.Inputs, "weight": s.Weights, "without": s.Without} {
		if len(list) > 0 {
			q[key] = list
		}
	}
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
	q := url.Values{"path": {r.Path}}
	if r.Tokens {
		q.Set("tokens", "1")
	}
	r.Suppose.query(q)
	return c.do(ctx, http.MethodPost, "/v1/explain?"+q.Encode(), r.Body, r.Header)
}

// Recent returns the Explanation of a pick that serve still remembers.
func (c *Client) Recent(ctx context.Context, requestID string) ([]byte, error) {
	return c.RecentIf(ctx, requestID, Suppose{})
}

// RecentIf is Recent with what is supposed of that pick.
func (c *Client) RecentIf(ctx context.Context, requestID string, s Suppose) ([]byte, error) {
	q := url.Values{}
	s.query(q)
	path := "/v1/explain/" + url.PathEscape(requestID)
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return c.do(ctx, http.MethodGet, path, nil, nil)
}

// State returns one frame of the fleet as the server wrote it, a view.Snapshot,
// with its latest picks and the metrics page of the pod named.
func (c *Client) State(ctx context.Context, picks int, detail string) ([]byte, error) {
	q := url.Values{"picks": {strconv.Itoa(picks)}, "detail": {detail}}
	return c.do(ctx, http.MethodGet, "/v1/state?"+q.Encode(), nil, nil)
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

// ConfigFile is the whole path of the configuration that serve reads; "" where it has
// none or is older than the question.
func (c *Client) ConfigFile(ctx context.Context) (string, error) {
	var answer struct {
		Config string `json:"config"`
	}
	b, err := c.do(ctx, http.MethodGet, "/v1/version", nil, nil)
	if err == nil {
		err = json.Unmarshal(b, &answer)
	}
	return answer.Config, err
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

// PicksAfter are the decisions behind a number, oldest first, as serve wrote them.
type PicksAfter struct {
	Run    string            `json:"run"` // of the process: another one counts from 1
	Picks  []json.RawMessage `json:"picks"`
	Last   uint64            `json:"last"`
	Newest uint64            `json:"newest"` // of all, of any pod
	Missed int               `json:"missed"` // not kept any more
}

// PicksAfter lists a page of the decisions behind number seq, of one pod or (pod "")
// of all.
func (c *Client) PicksAfter(ctx context.Context, pod string, seq uint64) (PicksAfter, error) {
	var answer PicksAfter
	q := url.Values{"after": {strconv.FormatUint(seq, 10)}, "pod": {pod}}
	b, err := c.do(ctx, http.MethodGet, "/v1/picks?"+q.Encode(), nil, nil)
	if err == nil {
		err = json.Unmarshal(b, &answer)
	}
	return answer, err
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

// Stream is what serve knows of the events of one rank of a pod.
type Stream struct {
	Rank       int    `json:"rank"`
	Sync       string `json:"sync"`
	Why        string `json:"why"`
	EventAgeMs *int64 `json:"last_event_age_ms"` // null: it has had none
	LastSeq    uint64 `json:"last_seq"`
}

// Streams lists the ranks of the pods by their names, as far as one page of the API
// goes.
func (c *Client) Streams(ctx context.Context) (map[string][]Stream, error) {
	var answer struct {
		Pods []struct {
			Name  string   `json:"name"`
			Ranks []Stream `json:"ranks"`
		} `json:"pods"`
	}
	b, err := c.do(ctx, http.MethodGet, "/v1/state", nil, nil)
	if err == nil {
		err = json.Unmarshal(b, &answer)
	}
	streams := map[string][]Stream{}
	for _, p := range answer.Pods {
		streams[p.Name] = p.Ranks
	}
	return streams, err
}

// Frames opens the endless recording of what serve receives from pods, by name or
// pattern; none means all. Its total timeout is the caller's context.
func (c *Client) Frames(ctx context.Context, pods []string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://eppctl/v1/frames?"+url.Values{"pod": pods}.Encode(), nil)
	if err != nil {
		return nil, err
	}
	endless := *c.http
	endless.Timeout = 0
	resp, err := endless.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if resp.StatusCode == http.StatusOK && resp.Header.Get("Content-Type") == framesType {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil, c.stranger(resp.Header.Get("Content-Type"))
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	return nil, c.refused(resp, b)
}

// framesType is the type of the endless recording.
const framesType = "application/octet-stream"

// stranger is the error about an address at which something else answers.
func (c *Client) stranger(answer string) error {
	return &Error{
		Kind: Unreachable, Code: "E_CONNECT", What: fmt.Sprintf("cannot reach serve at %s: it answers with %s", c.addr, answer),
		Why: "what listens there is not the admin API of eppctl serve", Hint: "try: --addr HOST:PORT; the default is " + DefaultAddr + " (listen.admin)",
	}
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
	if kind := resp.Header.Get("Content-Type"); kind != "application/json" {
		return nil, c.stranger(kind)
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
	met, why, unresolved := Unresolved(err)
	switch {
	case unresolved: // before the others: it may be the name server that refuses or does not answer
		e.What, e.Why = met, why
	case errors.Is(err, syscall.ECONNREFUSED):
		e.What = "connection refused"
	case errors.Is(err, os.ErrNotExist):
		e.What, e.Why = "no such socket", "serve is not running here, or listens elsewhere"
	case errors.Is(err, os.ErrPermission):
		e.What, e.Why, e.Hint = "permission denied", "the socket belongs to another user", "try: run as the user of serve"
	case strings.Contains(err.Error(), "malformed HTTP"): // net/http has no error of its own for it, and quotes the bytes
		return c.stranger("something that is not HTTP")
	case errors.Is(err, errRedirect):
		return c.stranger("a redirect")
	case errors.As(err, &netErr) && netErr.Timeout():
		e.What, e.Why, e.Hint = "no answer in time", "serve hangs, or something else listens there", ""
		if c.flag != "" {
			e.Hint = "try: " + c.flag + " 30s"
		}
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

// refusalHints say what to do about a request that serve would refuse, by the code of
// the refusal.
var refusalHints = map[string]string{
	"invalid_json":    "try: --prompt TEXT for what is no request body",
	"missing_model":   "try: --model NAME",
	"model_not_found": "try: another --model NAME; strict_models lets no other pass than those configured or told by pods",
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
		switch resp.StatusCode {
		case http.StatusNotFound:
			e.Kind = Negative
		case http.StatusBadRequest:
			e.Kind = Usage
		}
		return e
	case client.Error.Message != "":
		return &Error{
			Kind: Negative, Code: "E_REFUSED",
			What: fmt.Sprintf("serve would refuse this request with %d %s", resp.StatusCode, client.Error.Code),
			Why:  client.Error.Message, Hint: refusalHints[client.Error.Code],
		}
	}
	return c.stranger(resp.Status)
}
