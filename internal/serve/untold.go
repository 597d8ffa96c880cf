package serve

import (
	"errors"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/encode"
	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// whyUntold sorts the errors of providers into the words of metrics and explain.
// The detail is of errors that speak of a model or a feature, not of a request.
func whyUntold(err error) (why reason.Code, detail string) {
	var loading *notReady
	var refused *chat.Rejected
	var unknown *chat.Unrenderable
	switch {
	case errors.As(err, &loading):
		return loading.why, loading.detail
	case errors.Is(err, encode.ErrNoChat):
		return reason.TemplateUnused, err.Error()
	case errors.Is(err, feed.ErrNotOffered):
		return reason.NoTokenizer, ""
	case errors.Is(err, feed.ErrHung):
		return reason.TokenizeSlow, "it gave no answer in time just now, or none with an end, and is left out for a while"
	case errors.As(err, &refused), errors.Is(err, feed.ErrRefused):
		return reason.Rejected, ""
	case errors.Is(err, native.ErrLong):
		return reason.PromptTooLong, ""
	case errors.As(err, &unknown):
		return reason.Unrenderable, unknown.Reason
	case errors.Is(err, encode.ErrShape), errors.Is(err, encode.ErrBody), errors.Is(err, encode.ErrNoPrompt), errors.Is(err, encode.ErrNotText),
		errors.Is(err, native.ErrUnsupported), errors.Is(err, tokenizer.ErrShape), errors.Is(err, tokenizer.ErrNoPrompt), errors.Is(err, tokenizer.ErrBody):
		return reason.Unrenderable, ""
	}
	return "", ""
}
