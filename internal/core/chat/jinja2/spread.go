package jinja2

import (
	"slices"
	"strconv"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"
)

// maxSpread is the most arguments that a *list may give. Jamba's template, the one model's
// seen that has it, gives two.
const maxSpread = 8

// spread writes a call that takes arguments from a list, which the library does not have:
// as many calls as there may be arguments, of which the list's length chooses one. The
// list is written once for each of its items, so that only what has no effects may be
// one.
func (e *emitter) spread(n *syntax.Call) {
	list := n.DynArgs
	if !effectless(list) || spreads(n) {
		unsupported("a call with *arguments that are worked out in it")
	}
	call := *n
	call.DynArgs = nil
	e.write("(")
	for count := range maxSpread + 1 {
		e.callExpr(&call)
		e.write(" if ")
		e.call("many")
		e.expr(list)
		e.write(") == ", strconv.Itoa(count), " else ")
		call.Args = append(call.Args[:len(call.Args):len(call.Args)], &syntax.Getitem{Node: list, Arg: &syntax.Const{Value: int64(count)}})
	}
	e.call("missing")
	e.quote("a call with more than " + strconv.Itoa(maxSpread) + " *arguments")
	e.write("))")
}

// effectless reports whether an expression has no effects: names, attributes, items.
func effectless(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Name, *syntax.Const:
		return true
	case *syntax.Getattr:
		return effectless(n.Node)
	case *syntax.Getitem:
		_, slice := n.Arg.(*syntax.Slice)
		return !slice && effectless(n.Node) && effectless(n.Arg)
	case *syntax.List:
		for _, x := range n.Items {
			if !effectless(x) {
				return false
			}
		}
		return true
	}
	return false
}

// spreads reports whether an argument of a call is such a call itself: it would be
// written as often as there are calls.
func spreads(call *syntax.Call) (found bool) {
	given := slices.Clone(call.Args)
	for _, k := range call.Kwargs {
		given = append(given, k.Value)
	}
	syntax.Walk(given, func(n syntax.Node) bool {
		c, ok := n.(*syntax.Call)
		found = found || ok && c.DynArgs != nil
		return !found
	})
	return found
}
