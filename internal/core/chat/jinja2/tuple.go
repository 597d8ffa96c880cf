package jinja2

import "github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"

// printsNoList reports whether an expression is, by how it is written, a tuple, a
// view of a dict, a range, or a list of tuples. They are lists here, which shows
// when they are printed whole.
func printsNoList(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Tuple:
		return true
	case *syntax.Call:
		if name, ok := n.Node.(*syntax.Name); ok {
			return name.Name == "range"
		}
		return isView(n, "items") || isView(n, "keys") || isView(n, "values")
	case *syntax.Filter:
		return yieldsPairs(n)
	}
	return false
}

// yieldsPairs reports whether an expression is the members of a dict, as tuples.
func yieldsPairs(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Call:
		return isView(n, "items")
	case *syntax.Filter:
		switch n.Name {
		case "dictsort", "items":
			return true
		case "list", "sort":
			return yieldsPairs(n.Node)
		}
	}
	return false
}

// isView reports whether n is DICT.method().
func isView(n *syntax.Call, method string) bool {
	at, ok := n.Node.(*syntax.Getattr)
	return ok && at.Attr == method && len(n.Args) == 0
}
