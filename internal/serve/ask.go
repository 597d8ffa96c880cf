package serve

import (
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// ask is what one stream has learned about its request when it picks.
type ask struct {
	Head   head
	Subset *pick.Subset
	Body   []byte
	// Plain is a compressed Body as text, once picked; nil = it is not compressed,
	// or cannot be read.
	Plain []byte
	// NewID marks a request id that we made.
	NewID bool
	// Aside marks an explanation: it shares one slot with all others.
	Aside bool
	// ShowIDs: whoever asks for an explanation wants to see the token ids.
	ShowIDs bool
	// Tokenizer names who gave the token ids, once picked.
	Tokenizer string
	// Doubtful: the ids are not sure for what the request holds, once picked.
	Doubtful bool
	// Why says why Body is no prompt (there was none, or not all of it);
	// None = Body is whole.
	Why reason.Code
	// Bodyless marks a request that ends with its headers; Fixed one whose body
	// the proxy lets nobody change.
	Bodyless, Fixed bool
	// Rewrite is what the body needs to name the model that the pods serve, once
	// picked; Misnamed says that it needs something and stays as it is.
	Rewrite  *rewrite
	Misnamed bool
}

// bytesPerToken estimates a prompt that could not be tokenized.
const bytesPerToken = 4

// estimate is the length of a prompt nobody has read, in tokens. An announced
// length is believed up to the body limit.
func estimate(a *ask, limit int) int {
	return max(len(a.Body), int(min(a.Head.Length, int64(limit)))) / bytesPerToken
}

// rename plans what the body needs to name the model that the pods serve. A
// gateway's rewrite gives a model to a body without one; an alias does not.
func (a *ask) rename(asked, served string) {
	if a.Head.Rewrite == "" && asked == served {
		return
	}
	w, named := newRewrite(a.text(), served, a.Head.Rewrite != "")
	if w != nil {
		w.plain = a.Plain
	}
	if a.Fixed {
		w = nil
	}
	a.Rewrite, a.Misnamed = w, w == nil && !named
}

// strip lists the headers that the engine is not to see. A rewrite that could not
// be done stays for whoever can.
func (a *ask) strip() []string {
	if a.Rewrite != nil && a.Rewrite.plain != nil { // the changed body goes on uncompressed
		return slices.Concat(a.Head.Strip, a.Head.Codings)
	}
	if !a.Misnamed {
		return a.Head.Strip
	}
	return slices.DeleteFunc(slices.Clone(a.Head.Strip), func(h string) bool { return strings.HasSuffix(h, rewriteSuffix) })
}

// unpack makes text of a compressed body, at most limit bytes.
func (a *ask) unpack(limit int) (err error) {
	a.Plain = nil
	if coding(a.Head.Encoding) != "" {
		a.Plain, err = inflate(a.Body, a.Head.Encoding, limit)
	}
	return err
}

// text is the body as JSON.
func (a *ask) text() []byte {
	if a.Plain != nil {
		return a.Plain
	}
	return a.Body
}

// priority reads an objective. Objectives are names of a priority; a number is
// one. Unknown names have the default priority.
func priority(objective string) int {
	n, err := strconv.Atoi(objective)
	if err != nil {
		return 0
	}
	return n
}

// newRequestID makes the id of a request that came without one.
func newRequestID() string { return uuid.NewString() }
