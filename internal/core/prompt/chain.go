package prompt

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// Link is one provider of a chain and the longest it may take; 0 = as long as
// the caller's context lasts.
type Link struct {
	Provider tokenizer.Provider
	Deadline time.Duration
	// Computes marks a provider that works on a processor of ours rather than
	// waits for somebody: it is asked behind Chain.Enter.
	Computes bool
	// Sees marks a provider that tells what images, sounds and videos are. About prompts
	// with some it is asked first: the others know such a prompt up to the first of them.
	Sees bool
	// ChatsElsewhere, if set, is why the provider is asked for completions alone.
	ChatsElsewhere reason.Code
	// ChatsDiffer, if set, says why the provider's ids of chats are not the engine's, "" =
	// they may be: else it is not asked about them.
	ChatsDiffer func() string
	// Refuted, if set, says what was found against the provider's ids, "" = nothing: it
	// is then asked behind all others, which may take Grace together; 0 = as long as the
	// caller's context lasts.
	Refuted func() string
	Grace   time.Duration
}

// Chain asks providers in order until one gives ids. It never approximates: when
// none can, there are no ids and a reason. Safe for concurrent use once built.
type Chain struct {
	Links []Link
	// Why names the reason of a provider's error, and what of it is worth telling
	// and holds nothing of a request; "" or a nil Why = by what the context says.
	Why func(error) (why reason.Code, detail string)
	// Fallback, if set, is called for each provider that failed, from the
	// goroutine that asked. err quotes no prompt as long as the provider's does
	// not.
	Fallback func(provider string, why reason.Code, err error)
	// Told, if set, is called for each provider that gave ids, likewise.
	Told func(provider string)
	// Bytes: a prompt without ids may be placed by its bytes.
	Bytes bool
}

// Attempt is a provider that could not tell.
type Attempt struct {
	Provider string
	Why      reason.Code
	Detail   string // the same in words, where there are any; nothing of the request
}

// Answer is what a chain found. A Why that is not empty means there are no ids.
type Answer struct {
	tokenizer.Result
	Provider string
	Why      reason.Code
	Tried    []Attempt // before Provider, in order
}

// Enter takes a processor for a provider that computes, and returns how to give it
// back; ok is false when the context ended first.
type Enter func(context.Context) (leave func(), ok bool)

// InBody is the name of the provider of ids that the client sent itself.
const InBody = "body"

// errNoIDs is what Fallback hears of a provider that gave neither ids nor error.
var errNoIDs = errors.New("provider gave no token ids")

// errRefuted is what Fallback hears of a provider that others are asked before.
var errRefuted = errors.New("its ids are not the engine's")

// errDiffers is what Fallback hears of a provider that is not asked about chats.
var errDiffers = errors.New("its ids of chats are not the engine's")

// errBusy is of a provider that was not asked for want of a processor in time.
var errBusy = fmt.Errorf("no processor was free: %w", context.DeadlineExceeded)

// Tokens gets the ids of a request: from the body if it carries them, else from
// the first provider that can tell. base is the model a provider is asked for,
// never an adapter's name. A nil enter means that processors are free.
func (c *Chain) Tokens(ctx context.Context, r *Request, base string, body []byte, enter Enter) (a Answer) {
	a.Cut = -1
	switch {
	case r.Unmatched != "":
		a.Why = r.Unmatched
		return a
	case len(r.TokenIDs) > 0:
		a.Result, a.Provider = tokenizer.Result{IDs: r.TokenIDs, Further: r.Further, Status: tokenizer.Exact, Cut: -1}, InBody
		return a
	case r.Shape == 0:
		a.Why = reason.Shape
		return a
	}
	body, _ = trimBOM(body) // which Python skips, and no reader of JSON here does
	text := tokenizer.Text{Model: base, Shape: r.Shape, Body: body, Media: r.Media > 0}
	if !c.first(ctx, r, text, enter, &a) {
		a.Why = telling(a.Tried)
	}
	return a
}

// first asks in order, and whose ids are refuted behind the others. It reports whether
// one could tell.
func (c *Chain) first(ctx context.Context, r *Request, text tokenizer.Text, enter Enter, a *Answer) bool {
	var refuted *Link
	others := ctx
	for l := range c.inOrder(text.Media) {
		if l.ChatsElsewhere != "" && r.Shape.IsChat() {
			a.Tried = append(a.Tried, Attempt{l.Provider.Name(), l.ChatsElsewhere, "configured"})
			continue
		}
		if detail := l.differs(r); detail != "" {
			c.failed(a, l, reason.TemplateUnused, detail, errDiffers)
			continue
		}
		if detail := l.refuted(); detail != "" && refuted == nil && len(c.Links) > 1 {
			c.failed(a, l, reason.Refuted, detail, errRefuted)
			refuted = l
			if l.Grace > 0 {
				var cancel context.CancelFunc
				others, cancel = context.WithTimeout(ctx, l.Grace)
				defer cancel()
			}
			continue
		}
		if c.told(others, r, l, text, enter, a) {
			return true
		}
		if others.Err() != nil { // no time left for the others
			break
		}
	}
	return refuted != nil && c.told(ctx, r, refuted, text, enter, a)
}

// inOrder yields the links, those first that see what a prompt with media shows.
func (c *Chain) inOrder(media bool) iter.Seq[*Link] {
	return func(yield func(*Link) bool) {
		for _, first := range []bool{true, false} {
			for i := range c.Links {
				if l := &c.Links[i]; (media && l.Sees) == first && !yield(l) {
					return
				}
			}
		}
	}
}

// told asks one provider.
func (c *Chain) told(ctx context.Context, r *Request, l *Link, text tokenizer.Text, enter Enter, a *Answer) bool {
	res, err := l.ask(ctx, text, enter)
	if err == nil {
		err = whole(&res, r)
	}
	if err != nil {
		why, detail := c.why(err)
		c.failed(a, l, why, detail, err)
		return false
	}
	a.Result, a.Provider = res, l.Provider.Name()
	if c.Told != nil {
		c.Told(a.Provider)
	}
	return true
}

func (c *Chain) failed(a *Answer, l *Link, why reason.Code, detail string, err error) {
	a.Tried = append(a.Tried, Attempt{l.Provider.Name(), why, detail})
	if c.Fallback != nil {
		c.Fallback(l.Provider.Name(), why, err)
	}
}

func (l *Link) differs(r *Request) string {
	if l.ChatsDiffer == nil || !r.Shape.IsChat() {
		return ""
	}
	return l.ChatsDiffer()
}

func (l *Link) refuted() string {
	if l.Refuted == nil {
		return ""
	}
	return l.Refuted()
}

// telling is the reason that says most of why nobody could tell: the last one but
// that a provider is not there.
func telling(tried []Attempt) reason.Code {
	why := reason.NoTokenizer
	for _, t := range tried {
		if t.Why != reason.NoTokenizer {
			why = t.Why
		}
	}
	return why
}

// shapes are the refusals of what a provider has no form for.
var shapes = [...]error{tokenizer.ErrShape, tokenizer.ErrMedia, tokenizer.ErrTruncated, tokenizer.ErrManyPrompts}

func (c *Chain) why(err error) (reason.Code, string) {
	if c.Why != nil {
		if code, detail := c.Why(err); code != "" {
			return code, detail
		}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return reason.TokenizeSlow, ""
	}
	for _, shape := range shapes {
		if errors.Is(err, shape) {
			return reason.Shape, shape.Error()
		}
	}
	return reason.TokenizeFailed, err.Error()
}

func (l *Link) ask(ctx context.Context, t tokenizer.Text, enter Enter) (tokenizer.Result, error) {
	if err := ctx.Err(); err != nil {
		return tokenizer.Result{}, err
	}
	if l.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.Deadline)
		defer cancel()
	}
	if l.Computes && enter != nil {
		leave, ok := enter(ctx)
		if !ok {
			return tokenizer.Result{}, errBusy
		}
		defer leave()
	}
	return l.Provider.Tokenize(ctx, t)
}

// whole makes sure that a provider gave ids of each prompt, and of one with media where
// each stands. Renderers before vLLM's features tell nothing of images (`features: null`):
// then any other at the same place would be taken for this one, and so for one of several.
func whole(res *tokenizer.Result, r *Request) error {
	if len(res.IDs) == 0 || slices.ContainsFunc(res.Further, func(ids []uint32) bool { return len(ids) == 0 }) {
		return errNoIDs
	}
	if got := 1 + len(res.Further); got != r.Prompts {
		return fmt.Errorf("provider gave ids of %d prompts; the request has %d", got, r.Prompts)
	}
	if len(res.Items) < r.Media && res.Cut < 0 {
		return fmt.Errorf("provider tells of %d of %d: %w", len(res.Items), r.Media, tokenizer.ErrMedia)
	}
	return nil
}
