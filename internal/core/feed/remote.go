package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// A reply has some 7 bytes per id, and a prompt of text has no more ids than bytes,
// but for what a template adds. Of media a placeholder may stand for thousands.
const (
	maxTokenizerReply = 16 << 20 // bytes
	replyPerByte      = 16       // of a request that is text
	replyBesides      = 1 << 20  // of templates, and of what a renderer tells beside the ids
	maxTokenizerIDs   = 2 << 20
	tokenizerTries    = 2 // endpoints asked for one prompt
)

// TokenizerEndpoint is an engine, or a server of an engine's tokenizer.
type TokenizerEndpoint struct {
	URL     string // base: http://10.0.0.7:8000
	Engine  pod.Engine
	Release string // as it tells, "" = not known
}

// Errors of a RemoteTokenizer, besides those of package tokenizer.
var (
	// ErrNotOffered means that there is no endpoint to ask about a model, or that
	// all of them say that they do not offer this.
	ErrNotOffered = errors.New("no endpoint offers it")
	// ErrHung means that the endpoints there are gave no answer in time just now, or
	// one that is too long, and are not asked for a while. To whoever waited it is a deadline that has passed.
	ErrHung = fmt.Errorf("it gave no answer in time just now, or none with an end, and is left out for a while: %w", context.DeadlineExceeded)
	// ErrNotHTTP is all that is told of an answer that is no HTTP, or breaks it.
	ErrNotHTTP = errors.New("the answer is no HTTP that can be read")
	// ErrRefused means that an engine answered that the request is at fault.
	ErrRefused = errors.New("the engine refuses the request")
)

// RemoteTokenizer gets ids from engines, or from servers that run an engine's own
// tokenizer. It starts no goroutine of its own; Close ends those of idle
// connections. Its other methods may be called from any goroutine.
type RemoteTokenizer struct {
	method
	http       *http.Client
	candidates func(model string) []TokenizerEndpoint
	next       atomic.Uint64
	rests      rests
}

// method is one of the interfaces by which engines tell ids.
type method struct {
	name  string
	asks  func(pod.Engine) bool // engines that may have it
	write writer
	read  func(reply []byte, limit int) (tokenizer.Result, error)
	// chats: endpoints that have no path for a form may have one for the chat that
	// is made of it.
	chats bool
}

// writer makes what an endpoint is sent, one body after another, and what may be said of
// the ids it answers. Each answer is of the prompts that come next.
type writer func(tokenizer.Dialect, tokenizer.Text) (path string, bodies [][]byte, s tokenizer.Status, err error)

var _ tokenizer.Provider = (*RemoteTokenizer)(nil)

// newRemoteTokenizer asks one of the endpoints candidates names for a base model,
// in turn. candidates is called for each prompt and must be safe for concurrent
// use. A nil client means one of our own.
func newRemoteTokenizer(m method, client *http.Client, candidates func(model string) []TokenizerEndpoint) *RemoteTokenizer {
	if client == nil {
		client = &http.Client{
			Transport: &http.Transport{
				MaxIdleConnsPerHost: 32, // one per prompt at a time; the default of 2 would dial anew
				IdleConnTimeout:     time.Minute,

				MaxResponseHeaderBytes: HeaderBytes,
			},
		}
	}
	// The prompt is for this endpoint, and for none that it names.
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client = &own
	return &RemoteTokenizer{method: m, http: client, candidates: candidates, rests: rests{now: time.Now, of: map[restKey]rest{}}}
}

// Name implements tokenizer.Provider.
func (c *RemoteTokenizer) Name() string { return c.name }

// Close drops idle connections.
func (c *RemoteTokenizer) Close() { c.http.CloseIdleConnections() }

// Tokenize implements tokenizer.Provider. Its errors name the endpoint and never
// quote the prompt or the reply.
func (c *RemoteTokenizer) Tokenize(ctx context.Context, t tokenizer.Text) (tokenizer.Result, error) {
	res, err := c.tokenize(ctx, t, c.write, t.Shape)
	_, form := forms[t.Shape]
	if form && c.chats && !t.Media && (errors.Is(err, ErrNotOffered) || errors.Is(err, tokenizer.ErrShape)) {
		return c.tokenize(ctx, t, c.writeAsChat, tokenizer.Chat)
	}
	return res, err
}

// writeAsChat writes the chat that a request of another form is turned into.
func (c *RemoteTokenizer) writeAsChat(d tokenizer.Dialect, t tokenizer.Text) (path string, bodies [][]byte, claim tokenizer.Status, err error) {
	if t, claim, err = asChat(d, t); err != nil {
		return "", nil, "", err
	}
	path, bodies, status, err := c.write(d, t)
	if claim == tokenizer.Exact {
		claim = status
	}
	return path, bodies, claim, err
}

// tokenize asks by the path of a shape, which need not be the request's.
func (c *RemoteTokenizer) tokenize(ctx context.Context, t tokenizer.Text, write writer, shape tokenizer.Shape) (tokenizer.Result, error) {
	list, err := c.order(restKey{model: t.Model, shape: shape, media: t.Media})
	for _, e := range list {
		path, bodies, status, werr := write(dialect(e.Engine), t)
		if werr != nil {
			return tokenizer.Result{}, werr // no endpoint would do better
		}
		k := restKey{e.URL, t.Model, shape, t.Media}
		if !c.rests.enter(k) {
			err = fmt.Errorf("%s at %s: %w", c.name, pod.MaskURL(e.URL), ErrHung)
			continue
		}
		var res tokenizer.Result
		var began time.Time
		if res, began, err = c.askAll(ctx, strings.TrimRight(e.URL, "/")+path, bodies, mostOf(t)); err == nil {
			res.Status = status
			c.rests.answered(k)
			return res, nil
		}
		err = fmt.Errorf("%s at %s: %w", c.name, pod.MaskURL(e.URL), err)
		switch {
		case errors.Is(err, context.Canceled): // nobody's fault
			c.rests.left(k)
			return tokenizer.Result{}, err
		case errors.Is(err, ErrRefused): // the request's
			c.rests.answered(k)
			return tokenizer.Result{}, err
		}
		c.rests.failed(k, err, began)
		if ctx.Err() != nil {
			break
		}
	}
	return tokenizer.Result{}, err
}

// order lists the endpoints to ask about what k says: in turn, those that failed just
// now last. err is why there are none.
func (c *RemoteTokenizer) order(k restKey) (list []TokenizerEndpoint, err error) {
	all := c.candidates(k.model)
	first := make([]TokenizerEndpoint, 0, len(all))
	var last []TokenizerEndpoint
	from, now := c.next.Add(1), c.rests.now()
	err = ErrNotOffered
	c.rests.mu.Lock()
	defer c.rests.mu.Unlock()
	for i := range all {
		e := all[(from+uint64(i))%uint64(len(all))]
		if !c.asks(e.Engine) {
			continue
		}
		k.url = e.URL
		switch c.rests.turn(k, now) {
		case soon:
			first = append(first, e)
		case late:
			last = append(last, e)
		case hung:
			err = fmt.Errorf("%s at %s: %w", c.name, pod.MaskURL(e.URL), ErrHung)
		}
	}
	first = append(first, last...)
	return first[:min(len(first), tokenizerTries)], err
}

func dialect(e pod.Engine) tokenizer.Dialect {
	if e == pod.EngineSGLang {
		return tokenizer.SGLang
	}
	return tokenizer.VLLM
}

// httpStatus is an answer other than 200. 403 is vLLM's for what its flags leave
// out, 404 that of a server without the path or the model. 501 says neither: vLLM
// answers so to what one request asks (an image by the URL "data:,x", 0.32.0), and the
// next may be another.
type httpStatus int

func (e httpStatus) Error() string { return fmt.Sprintf("HTTP status %d", int(e)) }

// Is tells whose fault it is.
func (e httpStatus) Is(target error) bool {
	switch target {
	case ErrNotOffered:
		return e == http.StatusNotFound || e == http.StatusForbidden || e == http.StatusMethodNotAllowed
	case ErrRefused:
		return e == http.StatusBadRequest || e == http.StatusRequestEntityTooLarge || e == http.StatusUnprocessableEntity
	}
	return false
}

// mostOf is how long an honest reply can be. It bounds what one that is not costs in
// memory, for as many prompts as there are at a time.
func mostOf(t tokenizer.Text) int {
	if t.Media {
		return maxTokenizerReply
	}
	return min(replyBesides+replyPerByte*len(t.Body), maxTokenizerReply)
}

// errHuge is of a reply that no prompt can have.
type errHuge int

func (e errHuge) Error() string { return fmt.Sprintf("reply of more than %d bytes", int(e)) }

// askAll asks about one body after another. began is when the last question did, which
// is the one that err is of.
func (c *RemoteTokenizer) askAll(ctx context.Context, url string, bodies [][]byte, most int) (res tokenizer.Result, began time.Time, err error) {
	limit := maxTokenizerIDs
	for i, body := range bodies {
		began = c.rests.now()
		one, err := c.ask(ctx, url, body, most, limit)
		if err != nil {
			return tokenizer.Result{}, began, err
		}
		if limit -= len(one.IDs); i == 0 {
			res = one
		} else {
			res.Further = append(res.Further, one.IDs)
		}
	}
	return res, began, nil
}

func (c *RemoteTokenizer) ask(ctx context.Context, url string, body []byte, most, limit int) (res tokenizer.Result, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return res, err
	}
	req.Header.Set("Content-Type", "application/json")
	req, name := traced(req)
	resp, err := c.http.Do(req)
	if err != nil {
		return res, wordless(name.blame(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		// A short error is read to its end so that the connection can be kept.
		_, _ = io.CopyN(io.Discard, resp.Body, 4096)
		return res, httpStatus(resp.StatusCode)
	}
	reply, err := io.ReadAll(io.LimitReader(resp.Body, int64(most)+1))
	if err != nil {
		return res, wordless(err)
	}
	if len(reply) > most {
		return res, errHuge(most)
	}
	return c.read(reply, limit)
}
