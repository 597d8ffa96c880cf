package chat

import (
	"errors"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
)

// Rejected is a request that the engine answers with 400: there is no prompt to
// predict.
type Rejected struct{ What string }

func (e *Rejected) Error() string { return "the engine refuses the request: " + e.What }

// Unrenderable is a request or a model whose prompt may exist and is not known
// here. Another way to token ids has to be taken.
type Unrenderable struct{ Reason string }

func (e *Unrenderable) Error() string { return "cannot be rendered here: " + e.Reason }

func rejected(what string) error       { return &Rejected{what} }
func unrenderable(reason string) error { return &Unrenderable{reason} }

// classify gives the errors of a render the forms of this package. A context's
// error stays as it is.
func classify(err error) error {
	var refused *jinja2.Refused
	var unsupported *jinja2.Unsupported
	var exceeded *jinja2.Exceeded
	switch {
	case errors.As(err, &refused):
		return rejected(refused.Error())
	case errors.As(err, &unsupported):
		return unrenderable(unsupported.Error())
	case errors.As(err, &exceeded):
		return unrenderable(exceeded.Error())
	}
	return err
}
