package jinja2

import "github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"

// Unsupported is a template or a request that Python may render and this package
// does not.
type Unsupported struct{ What string }

func (e *Unsupported) Error() string { return e.What + " is not supported" }

// Refused is what Python raises too: the template's own raise_exception, an
// operation on an undefined value, a wrong type.
type Refused struct {
	What string // without anything of the request
	// Message is what the template raised. It may quote the request.
	Message string
}

func (e *Refused) Error() string { return "the template " + e.What }

// Exceeded is a render that was stopped by a limit.
type Exceeded struct{ Limit string }

func (e *Exceeded) Error() string { return "the template exceeds " + e.Limit }

func refuse(what string) error { return &Refused{What: what} }

// typeError is Python's TypeError for an operation.
func typeError(op string, kinds ...kind) error {
	text := "applies " + op + " to "
	for i, k := range kinds {
		if i > 0 {
			text += " and "
		}
		text += k.String()
	}
	return refuse(text)
}

// fromSyntax gives the parser's errors the forms of this package.
func fromSyntax(err error) error {
	if u, ok := err.(*syntax.Unsupported); ok {
		return &Unsupported{u.Error()[:len(u.Error())-len(" is not supported")]}
	}
	return &Refused{What: "is no Jinja2: " + err.Error()}
}
