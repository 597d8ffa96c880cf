package jinja2

import (
	"math"
	"math/big"
	"strconv"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"
)

// verbatim is library source that stands where an expression does.
type verbatim struct {
	syntax.Const
	text string
}

// refilter puts what a block printed in front of its filters.
func refilter(filter syntax.Node, value *verbatim) syntax.Node {
	f, ok := filter.(*syntax.Filter)
	if !ok {
		return value
	}
	return &syntax.Filter{Node: refilter(f.Node, value), Name: f.Name, Arguments: f.Arguments}
}

func (e *emitter) expr(n syntax.Node) {
	if e.depth++; e.depth > maxExpression {
		unsupported("an expression nested deeper than " + strconv.Itoa(maxExpression))
	}
	defer func() { e.depth-- }()
	switch n := n.(type) {
	case *verbatim:
		e.write(n.text)
	case *syntax.Name:
		if e.undef[n.Name] {
			e.write(nothing)
			return
		}
		e.name(n.Name)
	case *syntax.Const:
		e.literal(n.Value)
	case *syntax.Tuple:
		e.items(n.Items)
	case *syntax.List:
		e.items(n.Items)
	case *syntax.Dict:
		e.dict(n)
	case *syntax.CondExpr:
		e.softly(func() { e.cond(n) })
	case *syntax.BinExpr:
		e.binary(n)
	case *syntax.UnaryExpr:
		e.unary(n)
	case *syntax.Concat:
		e.call("cat")
		e.list(n.Nodes)
		e.write(")")
	case *syntax.Compare:
		e.compare(n)
	case *syntax.Getattr:
		e.attribute(n)
	case *syntax.Getitem:
		e.item(n)
	case *syntax.Call:
		e.callExpr(n)
	case *syntax.Filter:
		e.function("filter", n.Name, n.Node, &n.Arguments)
	case *syntax.Test:
		e.test(n)
	default:
		unsupported("this expression")
	}
}

func (e *emitter) list(nodes []syntax.Node) {
	for i, n := range nodes {
		if i > 0 {
			e.write(", ")
		}
		e.expr(n)
	}
}

func (e *emitter) items(nodes []syntax.Node) {
	e.write("[")
	e.list(nodes)
	e.write("]")
}

func (e *emitter) literal(v any) {
	switch v := v.(type) {
	case nil:
		e.write("none")
	case bool:
		e.write(strconv.FormatBool(v))
	case string:
		e.quote(v)
	case int64:
		e.write(strconv.FormatInt(v, 10))
	case *big.Int:
		e.quote(bigMark + v.String())
	case float64:
		if math.IsInf(v, 0) {
			unsupported("an infinite literal")
		}
		e.write(strconv.FormatFloat(v, 'e', -1, 64))
	}
}

// dict writes a dict as a call, since the library's own literal takes the str of
// a key for the key.
func (e *emitter) dict(n *syntax.Dict) {
	e.call("literal")
	for i, k := range n.Keys {
		if i > 0 {
			e.write(", ")
		}
		e.expr(k)
		e.write(", ")
		e.expr(n.Values[i])
	}
	e.write(")")
}

func (e *emitter) cond(n *syntax.CondExpr) {
	e.write("(")
	e.expr(n.Then)
	e.write(" if ")
	e.expr(n.Test)
	if n.Else != nil {
		e.write(" else ")
		e.expr(n.Else)
	}
	e.write(")")
}

func (e *emitter) binary(n *syntax.BinExpr) {
	switch n.Op {
	case "and", "or":
		e.write("(")
		e.expr(n.Left)
		e.write(" ", n.Op, " ")
		e.expr(n.Right)
		e.write(")")
	case "+":
		e.call("add")
		e.list(sum(n))
		e.write(")")
	default:
		if _, tuple := n.Right.(*syntax.Tuple); tuple && n.Op == "%" {
			e.call("percent")
			e.list([]syntax.Node{n.Left, n.Right})
			e.write(")")
			return
		}
		e.call("op")
		e.quote(n.Op)
		e.write(", ")
		e.list([]syntax.Node{n.Left, n.Right})
		e.write(")")
	}
}

// sum flattens a + b + c, which groups from the left.
func sum(n *syntax.BinExpr) []syntax.Node {
	var right []syntax.Node
	left := syntax.Node(n)
	for {
		b, ok := left.(*syntax.BinExpr)
		if !ok || b.Op != "+" {
			break
		}
		right = append(right, b.Right)
		left = b.Left
	}
	out := []syntax.Node{left}
	for i := len(right) - 1; i >= 0; i-- {
		out = append(out, right[i])
	}
	return out
}

func (e *emitter) unary(n *syntax.UnaryExpr) {
	if n.Op == "not" {
		e.write("(not ")
		e.expr(n.Node)
		e.write(")")
		return
	}
	if c, ok := n.Node.(*syntax.Const); ok && n.Op == "-" {
		if i, ok := c.Value.(int64); ok {
			e.write("(-", strconv.FormatInt(i, 10), ")")
			return
		}
	}
	e.call("sign")
	e.quote(n.Op)
	e.write(", ")
	e.expr(n.Node)
	e.write(")")
}

// compare writes a chain as its pairs joined by and. An operand in the middle is
// evaluated twice, which shows only if it has effects.
func (e *emitter) compare(n *syntax.Compare) {
	left := n.Expr
	e.write("(")
	for i, o := range n.Ops {
		if i > 0 {
			e.write(" and ")
		}
		switch {
		case (o.Op == "==" || o.Op == "!=") && (scalar(left) || scalar(o.Expr)):
			// Between a constant and anything the library compares as
			// Python does, without a walk.
			e.expr(left)
			e.write(" ", o.Op, " ")
			e.expr(o.Expr)
		default:
			e.call("compare")
			e.quote(o.Op)
			e.write(", ")
			e.list([]syntax.Node{left, o.Expr})
			e.write(")")
		}
		left = o.Expr
	}
	e.write(")")
}

func scalar(n syntax.Node) bool {
	_, ok := n.(*syntax.Const)
	return ok
}

// loopAttrs are what the library's loop has and Python's has too.
var loopAttrs = map[string]bool{"index": true, "index0": true, "revindex": true, "revindex0": true, "first": true, "last": true,
	"length": true, "depth": true, "depth0": true, "previtem": true, "nextitem": true, "cycle": true, "changed": true}

// ofLoop reports whether n is the loop of the loop this place is in.
func (e *emitter) ofLoop(n syntax.Node) bool {
	name, ok := n.(*syntax.Name)
	return ok && name.Name == "loop" && len(e.loops) > 0
}

func (e *emitter) attribute(n *syntax.Getattr) {
	if e.ofLoop(n.Node) && loopAttrs[n.Attr] {
		e.write("loop.", n.Attr)
		return
	}
	e.call("attr")
	e.expr(n.Node)
	e.write(", ")
	e.quote(n.Attr)
	e.write(")")
}

func (e *emitter) item(n *syntax.Getitem) {
	s, ok := n.Arg.(*syntax.Slice)
	if !ok {
		e.call("item")
		e.list([]syntax.Node{n.Node, n.Arg})
		e.write(")")
		return
	}
	e.call("slice")
	e.expr(n.Node)
	for _, part := range []syntax.Node{s.Start, s.Stop, s.Step} {
		e.write(", ")
		if part == nil {
			e.write("none")
		} else {
			e.expr(part)
		}
	}
	e.write(")")
}

// arguments writes what is given to a function of the library.
func (e *emitter) arguments(a *syntax.Arguments) {
	if a.DynArgs != nil {
		unsupported("a call with *arguments")
	}
	e.list(a.Args)
	first := len(a.Args) == 0
	sep := func() {
		if !first {
			e.write(", ")
		}
		first = false
	}
	for _, k := range a.Kwargs {
		sep()
		e.name(k.Key)
		e.write("=")
		e.expr(k.Value)
	}
	if a.DynKwarg != nil {
		sep()
		e.write("**")
		e.expr(a.DynKwarg)
	}
}

func (e *emitter) callExpr(n *syntax.Call) {
	if n.DynArgs != nil {
		e.spread(n)
		return
	}
	switch fn := n.Node.(type) {
	case *syntax.Name:
		if e.ofLoop(fn) && len(n.Args) == 1 && len(n.Kwargs) == 0 {
			e.write("loop(")
			e.call("iter")
			e.list(n.Args)
			e.write("))")
			return
		}
		e.name(fn.Name)
		e.write("(")
		e.arguments(&n.Arguments)
		e.write(")")
	case *syntax.Getattr:
		if e.ofLoop(fn.Node) && loopAttrs[fn.Attr] {
			e.write("loop.", fn.Attr, "(")
			e.arguments(&n.Arguments)
			e.write(")")
			return
		}
		e.call("method")
		e.expr(fn.Node)
		e.write(", ")
		e.quote(fn.Attr)
		if len(n.Args)+len(n.Kwargs) > 0 || n.DynArgs != nil || n.DynKwarg != nil {
			e.write(", ")
		}
		e.arguments(&n.Arguments)
		e.write(")")
	default:
		e.write("(")
		e.expr(n.Node)
		e.write(")(")
		e.arguments(&n.Arguments)
		e.write(")")
	}
}

// function writes a filter or a test. One that is not here is an error when it
// is reached. One that Jinja2 has not is so too, inside an if; elsewhere Jinja2
// refuses the template.
func (e *emitter) function(sort, name string, value syntax.Node, a *syntax.Arguments) {
	if _, ok := functions[sort+"_"+name]; !ok {
		kind := "missing"
		if !notHere[sort+"_"+name] {
			if !e.soft {
				panic(&Refused{What: "is no Jinja2: it has no " + sort + " " + name})
			}
			kind = "unknown"
		}
		e.call(kind)
		e.quote("the " + sort + " " + name)
		e.write(")")
		return
	}
	e.call(sort + "_" + name)
	e.expr(value)
	if len(a.Args)+len(a.Kwargs) > 0 || a.DynArgs != nil || a.DynKwarg != nil {
		e.write(", ")
	}
	e.arguments(a)
	e.write(")")
}

// notHere are the filters and tests of Jinja2 that functions lacks.
var notHere = words(`filter_attr filter_e filter_escape filter_filesizeformat filter_forceescape filter_groupby filter_pprint
	filter_random filter_striptags filter_truncate filter_urlencode filter_urlize filter_wordwrap filter_xmlattr test_escaped`)

// nativeTests mean the same in the library.
var nativeTests = map[string]bool{"defined": true, "undefined": true, "none": true, "true": true, "false": true, "boolean": true, "float": true}

func (e *emitter) test(n *syntax.Test) {
	if nativeTests[n.Name] && len(n.Args) == 0 {
		e.write("(")
		e.expr(n.Node)
		e.write(" is ", n.Name, ")")
		return
	}
	e.function("test", n.Name, n.Node, &n.Arguments)
}
