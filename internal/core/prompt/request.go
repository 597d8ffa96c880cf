// Package prompt reads what a client asks for out of a request body and gets
// its token ids. It opens nothing and never refuses what an engine might take:
// what it does not understand is routed by load, with a reason.
package prompt

import (
	"strings"

	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// Limits bounds and completes what Parse reads. The zero value is usable.
type Limits struct {
	// DefaultModel stands in for a body without a model; "" refuses such a body.
	DefaultModel string
	// Tokens is how many ids are read, of all prompts together; 0 = 4 Mi. The memory it
	// takes is bounded by twice the body's size in any case.
	Tokens int
	// Cut says that the body ends early (Envoy's BUFFERED_PARTIAL). What was
	// seen of it is used, and nothing is refused.
	Cut bool
}

// Request is what a body asks for. It holds no text of the prompt; TokenIDs is
// the only part of it that is private.
type Request struct {
	Kind    Kind
	Shape   tokenizer.Shape // what a provider can be asked for; 0 = nothing
	Model   string          // as the client asked
	Adapter string          // named apart from the model (SGLang's lora_path)
	Salt    string          // cache_salt
	Private bool            // SGLang's extra_key: shares no cache that events show
	// TokenIDs is the prompt when the body carries ids; of several the first, and Further
	// are the others, in order.
	TokenIDs  []uint32
	Further   [][]uint32
	Stream    bool
	N         int // answers asked for, at least 1
	MaxTokens int // tokens to generate, 0 = not said
	Prompts   int // prompts in the body: the engine makes a request of its own of each
	Media     int // parts that are no text
	Chars     int // bytes of prompt text, to estimate its tokens from
	IDs       int // token ids of the prompts, likewise
	// Unmatched says why no ids can be had, so that load alone decides.
	Unmatched reason.Code
}

// Parse reads a request. Only two things are refused: a body that is not JSON on
// a path whose form is known, and one without a model when there is no default.
func Parse(path, contentType string, body []byte, lim Limits) (*Request, *Problem) {
	r := &Request{Kind: KindOf(path), N: 1}
	switch {
	case r.Kind == Unknown || !isJSON(contentType):
		r.Model, r.Unmatched = lim.DefaultModel, reason.UnknownPath
		return r, nil
	case len(body) == 0:
		r.Model, r.Unmatched = lim.DefaultModel, reason.NoBody
		return r, nil
	}
	if lim.Tokens <= 0 {
		lim.Tokens = 4 << 20
	}
	w := walker{r: r, lim: lim}
	problem := w.body(body)
	if problem != nil && !lim.Cut {
		return nil, problem
	}
	if r.Model == "" {
		r.Model = lim.DefaultModel
	}
	// SGLang's /generate has no model.
	if r.Model == "" && !lim.Cut && !w.unread && r.Kind != Generate {
		return nil, missingModel()
	}
	w.conclude()
	if problem != nil {
		r.unmatch(reason.BodyCut)
	}
	r.clip()
	return r, nil
}

// unmatch leaves the request to load.
func (r *Request) unmatch(why reason.Code) {
	r.TokenIDs, r.Further, r.Shape, r.Unmatched = nil, nil, 0, why
}

// MaxName bounds the name of a model or an adapter, in bytes: names are kept
// with recent decisions, shown and echoed, and a body has room for megabytes.
const MaxName = 256

// clip shortens names that are too long to be anybody's. The engine gets the body
// as it is, and refuses it in its own words.
func (r *Request) clip() {
	for _, name := range []*string{&r.Model, &r.Adapter} {
		if len(*name) > MaxName {
			*name = clip(*name)
			r.unmatch(reason.NameTooLong)
		}
	}
}

// clip cuts a name to MaxName bytes that end in an ellipsis. The result shares no
// memory with it.
func clip(name string) string {
	const more = "…"
	if len(name) <= MaxName {
		return strings.Clone(name)
	}
	return strings.ToValidUTF8(name[:MaxName-len(more)], "") + more
}

// isJSON reports whether a content type announces JSON; none at all does.
func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "" || media == "application/json" || strings.HasSuffix(media, "+json")
}
