package jinja2

import (
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"
)

// emitter writes a tree as source for the library. White space is settled, so
// every tag is written {%+ … +%}, which trims nothing. Statements, scopes and
// names stay the library's; operators, attributes, filters, tests and methods
// become calls of functions of this package (see function.go), because the
// library's are lenient where Python raises, and unbounded.
//
// Names that begin with two underscores are ours.
type emitter struct {
	b     strings.Builder
	uses  map[string]bool // functions the source calls
	depth int             // of the expression
	next  int             // number of the next name of ours
	loops []*syntax.For   // around this place, inside the current macro
	names *symbols        // of the frame
	undef map[string]bool // parameters that a default must find undefined
	moved map[string]bool // namespaces whose attributes the template sets
	soft  bool            // directly inside an if, where Jinja2 does not miss a filter yet
}

// maxExpression bounds the nesting of an expression that chains (a.b.c, a|b|c)
// make without brackets. Each level costs the evaluator about 1 kB of stack.
const maxExpression = 200

// unsupported ends an emit by panic; emit returns it.
func unsupported(what string) { panic(&Unsupported{what}) }

// frame writes the body of what Jinja2 compiles as a frame of its own. declare
// tells the frame's parameters, and what Jinja2 visits besides the body.
func (e *emitter) frame(declare func(*symbols), body []syntax.Node) {
	s := newSymbols(e.names)
	if declare != nil {
		declare(s)
	}
	s.visit(body...)
	for _, name := range s.hidden(body) {
		e.write("{%+ set ")
		e.name(name)
		e.write(" = ", nothing, " +%}")
	}
	names, soft := e.names, e.soft
	e.names, e.soft = s, false
	e.body(body)
	e.names, e.soft = names, soft
}

// nothing is a name that is never defined.
const nothing = "__undefined"

// emit returns the library's source and the functions that it calls.
func emit(nodes []syntax.Node) (source string, uses map[string]bool, err error) {
	e := emitter{uses: map[string]bool{}, moved: namespacesSet(nodes)}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *Unsupported:
			err = p
		case *Refused:
			err = p
		default:
			panic(p)
		}
	}()
	e.frame(nil, nodes)
	return e.b.String(), e.uses, nil
}

func (e *emitter) write(parts ...string) {
	for _, p := range parts {
		e.b.WriteString(p)
	}
}

func (e *emitter) tag(parts ...string) {
	e.write("{%+ ")
	e.write(parts...)
	e.write(" +%}")
}

// call opens a call of one of our functions.
func (e *emitter) call(name string) {
	e.uses[name] = true
	e.write("__", name, "(")
}

// ours makes a name that no template has.
func (e *emitter) ours() string {
	e.next++
	return "__v" + strconv.Itoa(e.next)
}

func (e *emitter) body(nodes []syntax.Node) {
	for _, n := range nodes {
		e.statement(n)
	}
}

// steps writes the charge for one run of a body: its own text, and a step.
func (e *emitter) steps(body []syntax.Node) {
	e.write("{{")
	e.call("step")
	e.write(strconv.Itoa(textLen(body)), ")}}")
}

// textLen is the length of the text that one run of nodes can print by itself.
// Loops inside of it charge their own.
func textLen(nodes []syntax.Node) (n int) {
	syntax.Walk(nodes, func(x syntax.Node) bool {
		switch x := x.(type) {
		case *syntax.TemplateData:
			n += len(x.Text)
		case *syntax.Const:
			if s, ok := x.Value.(string); ok {
				n += len(s)
			}
		}
		return true
	})
	return n
}

// text writes what is printed as it is.
func (e *emitter) text(s string) {
	plain := !strings.HasSuffix(s, "{")
	for _, open := range []string{"{{", "{%", "{#"} {
		plain = plain && !strings.Contains(s, open)
	}
	if plain {
		e.write(s)
		return
	}
	e.write("{{")
	e.quote(s)
	e.write("}}")
}

var quoted = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`)

func (e *emitter) quote(s string) { e.write("'", quoted.Replace(s), "'") }

// reserved are words that the library's expressions do not take as names.
var reserved = map[string]bool{"null": true, "if": true, "else": true, "and": true, "or": true, "not": true, "in": true, "is": true}

func (e *emitter) name(s string) {
	if strings.HasPrefix(s, "__") || reserved[s] || s == "lipsum" {
		unsupported("the name " + s)
	}
	e.write(s)
}
