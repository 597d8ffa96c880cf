// Package jinja2 renders chat templates to what Python's Jinja2 renders under
// the settings of transformers' apply_chat_template.
//
//	source ─ syntax.Parse ─> tree ─ emit ─> source for the library ─> compiled
//	                          │                                          │
//	       what engines decide from it            variables ─> Render ───┴──> text
//
// The library (github.com/ardanlabs/jinja) runs statements and scopes. What it
// answers otherwise than Python, and what could run without end, is written
// around in the source it is given: see emit.go and the README.
package jinja2

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/ardanlabs/jinja"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"
)

// Template is a compiled template. It may be used by many goroutines at once.
type Template struct {
	tree   []syntax.Node
	source string // for the library
	uses   []string
	code   *jinja.Template
	free   sync.Pool // of *render
}

// Compile reads a template. The error is a *Refused when Jinja2 refuses it too,
// else an *Unsupported.
func Compile(source string) (t *Template, err error) {
	defer func() {
		if p := recover(); p != nil {
			t, err = nil, &Unsupported{"a template the library panics over"}
		}
	}()
	tree, err := syntax.Parse(source)
	if err != nil {
		return nil, fromSyntax(err)
	}
	t = &Template{tree: tree}
	var uses map[string]bool
	if t.source, uses, err = emit(tree); err != nil {
		return nil, err
	}
	for name := range uses {
		t.uses = append(t.uses, name)
	}
	if t.code, err = jinja.Compile(t.source); err != nil {
		return nil, &Unsupported{"a template the library refuses"}
	}
	return t, nil
}

// Tree is what the template was read to. It must not be changed.
func (t *Template) Tree() []syntax.Node { return t.tree }

// Input is what one render is given.
type Input struct {
	// Vars are the variables, which no render changes. Names that begin with
	// two underscores are left out.
	Vars map[string]Value
	// Now is the engine's time in its zone, for strftime_now. Zero: not known,
	// and a template that asks for it is an error.
	Now time.Time
	// Limits bound the render; zero means DefaultLimits.
	Limits Limits
}

// Output is a rendered text.
type Output struct {
	Text  string
	Dated bool // the template asked for the date
}

// render is the state of one render, kept for the next.
type render struct {
	meter meter
	now   time.Time
	dated bool
	err   error // the first
	vars  map[string]Value
}

// Render runs the template. The error is a *Refused, *Unsupported, *Exceeded, or
// the context's.
func (t *Template) Render(ctx context.Context, in Input) (out Output, err error) {
	r := t.take()
	defer func() {
		if p := recover(); p != nil {
			out, err = Output{}, &Unsupported{"a render the library panics over"}
			return // r is not used again
		}
		t.free.Put(r)
	}()
	limits := in.Limits
	if limits == (Limits{}) {
		limits = DefaultLimits
	}
	r.meter.reset(ctx, limits)
	r.now, r.dated, r.err = in.Now, false, nil
	if err := ctx.Err(); err != nil {
		return Output{}, err
	}
	text, err := t.run(r, in.Vars)
	if err != nil {
		return Output{Dated: r.dated}, err
	}
	return Output{Text: text, Dated: r.dated}, nil
}

// run renders in r, whose meter is set.
func (t *Template) run(r *render, given map[string]Value) (string, error) {
	vars := make(map[string]Value, len(r.vars)+len(given))
	maps.Copy(vars, r.vars)
	for name, v := range given {
		if !strings.HasPrefix(name, "__") {
			vars[name] = v
		}
	}
	text, err := t.code.RenderValues(vars)
	switch {
	case r.err != nil:
		return "", r.err
	case IsUnsupported(err):
		return "", err
	case err != nil: // its text may quote values
		return "", refuse("uses a value as what it is not")
	}
	return text, nil
}

func (t *Template) take() *render {
	if r, ok := t.free.Get().(*render); ok {
		return r
	}
	r := &render{}
	r.vars = r.globals()
	for _, name := range t.uses {
		r.vars["__"+name] = r.bind(name, functions[name])
	}
	return r
}

// IsUnsupported reports whether err is about what this package cannot do, rather
// than about the template or the request.
func IsUnsupported(err error) bool {
	var u *Unsupported
	return errors.As(err, &u)
}
