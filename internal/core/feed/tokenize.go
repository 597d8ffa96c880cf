package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

const (
	maxTokenizeReply = 16 << 20 // bytes; an id is some 7 of them
	maxTokenizeIDs   = 2 << 20
	tokenizeTries    = 2 // endpoints asked for one prompt
	// How long an endpoint is left out that says it has no /tokenize for a
	// model, and how long one comes last that failed.
	notOfferedFor = 5 * time.Minute
	failedFor     = time.Second
)

// TokenizeEndpoint is an engine, or a server of an engine's tokenizer.
type TokenizeEndpoint struct {
	URL    string // base: http://10.0.0.7:8000
	Engine pod.Engine
}

// ErrNoTokenizer means that there is no endpoint to ask about a model, or that
// all of them have said that they do not offer it.
var ErrNoTokenizer = errors.New("no endpoint offers /tokenize")

// TokenizeClient gets ids from POST /tokenize of the engines themselves. It
// starts no goroutine of its own; Close ends those of idle connections. Its
// other methods may be called from any goroutine.
type TokenizeClient struct {
	http       *http.Client
	candidates func(model string) []TokenizeEndpoint
	next       atomic.Uint64

	mu   sync.Mutex
	rest map[restKey]rest
}

// A 404 can mean the path or the model, so what is remembered is the pair.
type restKey struct{ url, model string }

type rest struct {
	until time.Time
	out   bool // not offered: not to be asked at all
}

var _ tokenizer.Provider = (*TokenizeClient)(nil)

// NewTokenizeClient returns a provider that asks one of the endpoints candidates
// names for a base model, in turn. candidates is called for each prompt and must
// be safe for concurrent use. A nil client means one of our own.
func NewTokenizeClient(client *http.Client, candidates func(model string) []TokenizeEndpoint) *TokenizeClient {
	if client == nil {
		client = &http.Client{
			Transport: &http.Transport{
				MaxIdleConnsPerHost: 32, // one per prompt at a time; the default of 2 would dial anew
				IdleConnTimeout:     time.Minute,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return &TokenizeClient{http: client, candidates: candidates, rest: map[restKey]rest{}}
}

// Name implements tokenizer.Provider.
func (c *TokenizeClient) Name() string { return "tokenize" }

// Close drops idle connections.
func (c *TokenizeClient) Close() { c.http.CloseIdleConnections() }

// Tokenize implements tokenizer.Provider. Its errors name the endpoint and never
// quote the prompt or the reply.
func (c *TokenizeClient) Tokenize(ctx context.Context, t tokenizer.Text) (tokenizer.Result, error) {
	err := ErrNoTokenizer
	for _, e := range c.order(t.Model) {
		body, status, werr := tokenizer.WriteRequest(dialect(e.Engine), t)
		if werr != nil {
			return tokenizer.Result{}, werr // no endpoint would do better
		}
		var ids []uint32
		if ids, err = c.ask(ctx, e.URL, body); err == nil {
			c.forget(e.URL, t.Model)
			return tokenizer.Result{IDs: ids, Status: status, Cut: -1}, nil
		}
		err = fmt.Errorf("tokenize at %s: %w", e.URL, err)
		if errors.Is(err, context.Canceled) { // the client left: nobody's fault
			return tokenizer.Result{}, err
		}
		c.remember(e.URL, t.Model, err)
		if ctx.Err() != nil {
			break
		}
	}
	return tokenizer.Result{}, err
}

// order lists the endpoints to ask: in turn, those that failed just now last.
func (c *TokenizeClient) order(model string) []TokenizeEndpoint {
	all := c.candidates(model)
	first := make([]TokenizeEndpoint, 0, len(all))
	var last []TokenizeEndpoint
	from, now := c.next.Add(1), time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range all {
		e := all[(from+uint64(i))%uint64(len(all))]
		if e.Engine == pod.EngineTriton || e.Engine == pod.EngineTRTLLM {
			continue // neither has a tokenize endpoint
		}
		switch r := c.rest[restKey{e.URL, model}]; {
		case !now.Before(r.until):
			first = append(first, e)
		case !r.out:
			last = append(last, e)
		}
	}
	first = append(first, last...)
	return first[:min(len(first), tokenizeTries)]
}

func dialect(e pod.Engine) tokenizer.Dialect {
	if e == pod.EngineSGLang {
		return tokenizer.SGLang
	}
	return tokenizer.VLLM
}

// tokenizeStatus is an answer other than 200.
type tokenizeStatus int

func (e tokenizeStatus) Error() string { return fmt.Sprintf("HTTP status %d", int(e)) }

func (c *TokenizeClient) ask(ctx context.Context, base string, body []byte) ([]uint32, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(base, "/")+"/tokenize", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		// A short error is read to its end so that the connection can be kept.
		_, _ = io.CopyN(io.Discard, resp.Body, 4096)
		return nil, tokenizeStatus(resp.StatusCode)
	}
	reply, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenizeReply+1))
	if err != nil {
		return nil, err
	}
	if len(reply) > maxTokenizeReply {
		return nil, fmt.Errorf("reply of more than %d bytes", maxTokenizeReply)
	}
	return tokenizer.ParseResponse(reply, maxTokenizeIDs)
}

// remember notes a failure. 403 is vLLM's answer for what its flags leave out,
// 404 that of a server without the path or the model.
func (c *TokenizeClient) remember(url, model string, err error) {
	r := rest{until: time.Now().Add(failedFor)}
	var status tokenizeStatus
	if errors.As(err, &status) && (status == http.StatusNotFound || status == http.StatusForbidden) {
		r = rest{until: time.Now().Add(notOfferedFor), out: true}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.rest) >= 2*pod.MaxMembers { // endpoints come and go
		clear(c.rest)
	}
	c.rest[restKey{url, model}] = r
}

func (c *TokenizeClient) forget(url, model string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.rest, restKey{url, model})
}
