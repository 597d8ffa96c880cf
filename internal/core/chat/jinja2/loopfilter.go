package jinja2

import "github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"

// filterInside returns the loop with its filter as an if in the body, where runs
// of the body may change what the filter answers:
//
//	{% for m in messages if not ns.found %}…{% set ns.found = true %}{% endfor %}
//
// Python asks the filter when it comes to an item, the library of all items
// before the first run. Where the body looks at loop, or an else is behind it, the
// two loops are not the same, and there is no other way to write it.
func (e *emitter) filterInside(n *syntax.For) *syntax.For {
	if n.Test == nil || !mentions(e.moved, n.Test) {
		return n
	}
	if len(n.Else) > 0 || mentions(map[string]bool{"loop": true}, n.Body...) {
		unsupported("a loop whose runs change its filter")
	}
	inside := *n
	inside.Test, inside.Body = nil, []syntax.Node{&syntax.If{Branches: []syntax.Branch{{Test: n.Test, Body: n.Body}}}}
	return &inside
}

// namespacesSet are the names of which the template sets an attribute.
func namespacesSet(nodes []syntax.Node) map[string]bool {
	names := map[string]bool{}
	syntax.Walk(nodes, func(n syntax.Node) bool {
		if ref, ok := n.(*syntax.NSRef); ok {
			names[ref.Name] = true
		}
		return true
	})
	return names
}

// mentions reports whether a name stands in nodes.
func mentions(names map[string]bool, nodes ...syntax.Node) bool {
	return !syntax.Walk(nodes, func(n syntax.Node) bool {
		name, ok := n.(*syntax.Name)
		return !ok || !names[name.Name]
	})
}
