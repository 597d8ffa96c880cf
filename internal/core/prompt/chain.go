package prompt

import (
	"context"
	"errors"
	"time"

	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// Link is one provider of a chain and the longest it may take; 0 = as long as
// the caller's context lasts.
type Link struct {
	Provider tokenizer.Provider
	Deadline time.Duration
}

// Chain asks providers in order until one gives ids. It never approximates: when
// none can, there are no ids and a reason. Safe for concurrent use once built.
type Chain struct {
	Links []Link
	// Fallback, if set, is called for each provider that failed, from the
	// goroutine that asked. err quotes no prompt as long as the provider's does
	// not.
	Fallback func(provider string, why reason.Code, err error)
}

// InBody is the name of the provider of ids that the client sent itself.
const InBody = "body"

// ErrNoIDs is what Fallback hears of a provider that gave neither ids nor error.
var ErrNoIDs = errors.New("provider gave no token ids")

// Tokens gets the ids of a request: from the body if it carries them, else from
// the first provider that can tell. base is the model a provider is asked for,
// never an adapter's name. A non-empty reason means there are no ids.
func (c *Chain) Tokens(ctx context.Context, r *Request, base string, body []byte) (res tokenizer.Result, provider string, why reason.Code) {
	switch {
	case r.Unmatched != "":
		return tokenizer.Result{Cut: -1}, "", r.Unmatched
	case len(r.TokenIDs) > 0:
		res = tokenizer.Result{IDs: r.TokenIDs, Status: tokenizer.Exact, Cut: -1}
		return r.qualify(res), InBody, ""
	case r.Shape == 0:
		return tokenizer.Result{Cut: -1}, "", reason.Shape
	}
	why = reason.NoTokenizer
	for _, l := range c.Links {
		var err error
		if res, err = l.ask(ctx, tokenizer.Text{Model: base, Shape: r.Shape, Body: body}); err == nil {
			return r.qualify(res), l.Provider.Name(), ""
		}
		why = reason.TokenizeFailed
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			why = reason.TokenizeSlow
		}
		if c.Fallback != nil {
			c.Fallback(l.Provider.Name(), why, err)
		}
		if ctx.Err() != nil { // no time left for the others
			break
		}
	}
	return tokenizer.Result{Cut: -1}, "", why
}

func (l Link) ask(ctx context.Context, t tokenizer.Text) (tokenizer.Result, error) {
	if err := ctx.Err(); err != nil {
		return tokenizer.Result{}, err
	}
	if l.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.Deadline)
		defer cancel()
	}
	res, err := l.Provider.Tokenize(ctx, t)
	if err == nil && len(res.IDs) == 0 {
		err = ErrNoIDs
	}
	return res, err
}

// qualify takes the claim of exactness away where the request itself forbids it.
func (r *Request) qualify(res tokenizer.Result) tokenizer.Result {
	if r.Caveat != "" {
		res.Status = tokenizer.Unverified
	}
	return res
}
