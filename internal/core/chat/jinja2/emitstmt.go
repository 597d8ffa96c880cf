package jinja2

import (
	"strconv"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"
)

func (e *emitter) statement(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.Output:
		e.output(n)
	case *syntax.If:
		e.softly(func() { e.ifStatement(n) })
	case *syntax.For:
		e.forStatement(n)
	case *syntax.Assign:
		e.assign(n.Target, n.Node)
	case *syntax.AssignBlock:
		fn := e.capture(n.Body)
		e.assign(n.Target, refilter(n.Filter, fn))
	case *syntax.FilterBlock:
		fn := e.capture(n.Body)
		e.write("{{")
		e.call("text")
		e.expr(refilter(n.Filter, fn))
		e.write(")}}")
	case *syntax.With:
		e.with(n)
	case *syntax.Macro:
		e.macro(n)
	case *syntax.CallBlock:
		e.callBlock(n)
	case *syntax.Generation:
		e.scoped(n.Body)
	case *syntax.Break:
		e.leaveLoop()
		e.tag("break")
	case *syntax.Continue:
		e.leaveLoop()
		e.tag("continue")
	}
}

func (e *emitter) output(n *syntax.Output) {
	for _, x := range n.Nodes {
		switch x := x.(type) {
		case *syntax.TemplateData:
			e.text(x.Text)
			continue
		case *syntax.Const:
			if s, ok := x.Value.(string); ok {
				e.text(s)
				continue
			}
		}
		e.print(x)
	}
}

func (e *emitter) print(n syntax.Node) {
	if printsNoList(n) {
		e.write("{{")
		e.call("missing")
		e.quote("printing a tuple, a range or a view of a dict")
		e.write(")}}")
		return
	}
	e.write("{{")
	e.call("out")
	e.expr(n)
	e.write(")}}")
}

// softly runs write inside an if.
func (e *emitter) softly(write func()) {
	was := e.soft
	e.soft = true
	write()
	e.soft = was
}

func (e *emitter) ifStatement(n *syntax.If) {
	word := "if "
	for _, b := range n.Branches {
		e.write("{%+ ", word)
		e.expr(b.Test)
		e.write(" +%}")
		e.body(b.Body)
		word = "elif "
	}
	if len(n.Else) > 0 {
		e.tag("else")
		e.body(n.Else)
	}
	e.tag("endif")
}

// forStatement writes a loop over what iter makes a list of. Recursive loops
// count their depth: a run enters, and leaves at its end or before break and
// continue.
func (e *emitter) forStatement(n *syntax.For) {
	n = e.filterInside(n)
	targets, pair := pairOf(n.Target)
	var inner string // our name for an item that is unpacked in the body
	e.write("{%+ for ")
	switch t := n.Target.(type) {
	case *syntax.Name:
		e.name(t.Name)
	default:
		if pair {
			e.name(targets[0])
			e.write(", ")
			e.name(targets[1])
			break
		}
		if n.Test != nil {
			unsupported("a filtered loop over more than pairs")
		}
		inner = e.ours()
		e.write(inner)
	}
	e.write(" in ")
	if pair {
		e.call("pairs")
	} else {
		e.call("iter")
	}
	e.expr(n.Iter)
	e.write(")")
	if n.Test != nil {
		e.write(" if (")
		e.expr(n.Test)
		e.write(")")
	}
	if n.Recursive {
		e.write(" recursive")
	}
	e.write(" +%}")
	e.steps(n.Body)
	if n.Recursive {
		e.enter(nil)
	}
	e.loops = append(e.loops, n)
	if inner != "" {
		e.unpack(n.Target, inner)
	}
	e.frame(func(s *symbols) { s.params(n.Target, &syntax.Name{Name: "loop"}) }, n.Body)
	e.loops = e.loops[:len(e.loops)-1]
	if n.Recursive {
		e.leave()
	}
	if len(n.Else) > 0 {
		e.tag("else")
		e.scoped(n.Else)
	}
	e.tag("endfor")
}

// pairOf returns the names of a target that is two names.
func pairOf(target syntax.Node) (names [2]string, ok bool) {
	t, is := target.(*syntax.Tuple)
	if !is || len(t.Items) != 2 {
		return names, false
	}
	for i, item := range t.Items {
		n, is := item.(*syntax.Name)
		if !is {
			return names, false
		}
		names[i] = n.Name
	}
	return names, true
}

func (e *emitter) leaveLoop() {
	if len(e.loops) == 0 {
		unsupported("break or continue inside a captured block")
	}
	loop := e.loops[len(e.loops)-1]
	if len(loop.Else) > 0 {
		// Jinja2 takes the else where no run came to its end, the library
		// where there was no item.
		unsupported("break or continue in a loop with else")
	}
	if loop.Recursive {
		e.leave()
	}
}

func (e *emitter) enter(varargs *syntax.Macro) {
	e.write("{{")
	e.call("enter")
	if varargs != nil {
		e.write("varargs")
	}
	e.write(")}}")
}

func (e *emitter) leave() {
	e.write("{{")
	e.call("leave")
	e.write(")}}")
}

// assign writes {% set %}.
func (e *emitter) assign(target, value syntax.Node) {
	switch t := target.(type) {
	case *syntax.Name:
		e.write("{%+ set ")
		e.name(t.Name)
		e.write(" = ")
		e.expr(value)
		e.write(" +%}")
	case *syntax.NSRef:
		e.write("{%+ set ")
		e.name(t.Name)
		e.write(".", t.Attr, " = ")
		e.call("attrset")
		e.name(t.Name)
		e.write(", ")
		e.quote(t.Attr)
		e.write(", ")
		e.expr(value)
		e.write(") +%}")
	default:
		v := e.ours()
		e.write("{%+ set ", v, " = ")
		e.expr(value)
		e.write(" +%}")
		e.unpack(target, v)
	}
}

// unpack assigns the items of our variable v to the names of a tuple.
func (e *emitter) unpack(target syntax.Node, v string) {
	t := target.(*syntax.Tuple)
	list := e.ours()
	e.write("{%+ set ", list, " = ")
	e.call("unpack")
	e.write(v, ", ", strconv.Itoa(len(t.Items)), ") +%}")
	for i, item := range t.Items {
		at := list + "[" + strconv.Itoa(i) + "]"
		if name, ok := item.(*syntax.Name); ok {
			e.write("{%+ set ")
			e.name(name.Name)
			e.write(" = ", at, " +%}")
			continue
		}
		sub := e.ours()
		e.tag("set ", sub, " = ", at)
		e.unpack(item, sub)
	}
}

// capture makes a block a function of ours, for what Jinja2 gives a scope of its
// own. It returns the call.
func (e *emitter) capture(body []syntax.Node, args ...string) *verbatim {
	syntax.Walk(body, func(n syntax.Node) bool {
		if x, ok := n.(*syntax.Name); ok && (x.Name == "varargs" || x.Name == "kwargs") {
			unsupported("the name " + x.Name + " inside a captured block")
		}
		return true
	})
	fn := e.ours()
	e.write("{%+ macro ", fn, "(")
	for i, a := range args {
		if i > 0 {
			e.write(", ")
		}
		e.name(a)
	}
	e.write(") +%}")
	loops := e.loops
	e.loops = nil
	e.steps(body)
	e.frame(func(s *symbols) {
		for _, a := range args {
			s.param(a)
		}
	}, body)
	e.loops = loops
	e.tag("endmacro")
	return &verbatim{text: fn + "()"}
}

// scoped writes a body whose assignments must not be seen after it.
func (e *emitter) scoped(body []syntax.Node) {
	assigns := false
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.Assign, *syntax.AssignBlock, *syntax.Macro:
			assigns = true
		}
		return !assigns
	})
	if !assigns {
		e.body(body)
		return
	}
	e.write("{{", e.capture(body).text, "}}")
}

func (e *emitter) with(n *syntax.With) {
	args := make([]string, len(n.Targets))
	for i, t := range n.Targets {
		name, ok := t.(*syntax.Name)
		if !ok {
			unsupported("with over a list of names")
		}
		args[i] = name.Name
	}
	fn := e.capture(n.Body, args...)
	e.write("{{", fn.text[:len(fn.text)-1])
	e.list(n.Values)
	e.write(")}}")
}

func (e *emitter) macro(n *syntax.Macro) {
	e.write("{%+ macro ")
	e.name(n.Name)
	e.write("(")
	for i, a := range n.Args {
		if i > 0 {
			e.write(", ")
		}
		e.name(a.Name)
		if d := i - (len(n.Args) - len(n.Defaults)); d >= 0 {
			// A default sees the arguments before its own.
			e.undef = map[string]bool{}
			for _, later := range n.Args[i:] {
				e.undef[later.Name] = true
			}
			e.write("=")
			e.expr(n.Defaults[d])
			e.undef = nil
		}
	}
	e.write(") +%}")
	variadic := false
	syntax.Walk(n.Body, func(x syntax.Node) bool {
		name, ok := x.(*syntax.Name)
		variadic = variadic || ok && name.Name == "varargs"
		return !variadic
	})
	loops := e.loops
	e.loops = nil
	e.steps(n.Body)
	if variadic {
		e.enter(nil)
	} else {
		e.enter(n)
	}
	e.frame(func(s *symbols) { s.declare(n.Args, n.Defaults) }, n.Body)
	e.leave()
	e.loops = loops
	e.tag("endmacro")
}

func (e *emitter) callBlock(n *syntax.CallBlock) {
	fn, ok := n.Call.Node.(*syntax.Name)
	if !ok || len(n.Defaults) > 0 || n.Call.DynArgs != nil {
		unsupported("this form of a call block")
	}
	e.write("{%+ call")
	if len(n.Args) > 0 {
		e.write("(")
		for i, a := range n.Args {
			if i > 0 {
				e.write(", ")
			}
			e.name(a.Name)
		}
		e.write(")")
	}
	e.write(" ")
	e.name(fn.Name)
	e.write("(")
	e.arguments(&n.Call.Arguments)
	e.write(") +%}")
	loops := e.loops
	e.loops = nil
	e.steps(n.Body)
	e.frame(func(s *symbols) { s.declare(n.Args, nil) }, n.Body)
	e.loops = loops
	e.tag("endcall")
}
