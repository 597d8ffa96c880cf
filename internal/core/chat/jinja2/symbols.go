package jinja2

import "github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"

// symbols are the names of one frame, found as Jinja2's compiler finds them. It
// settles for each frame (the template, a loop's body, a macro …) where a name is
// read from before anything is executed. One result shows: a name that the frame
// assigns, and reads itself only later, is undefined in inner frames until then,
// although there may be a variable of that name:
//
//	{% for x in y %}{{ tools }}{% endfor %}{% set tools = … %}
//
// The library looks names up when it comes to them, so such a frame is made to
// begin with the name undefined.
type symbols struct {
	parent *symbols
	refs   map[string]load
	stores map[string]bool
	first  map[string]syntax.Node // the node that first stores a name here
}

// load is where a frame takes a name from when it begins.
type load uint8

const (
	resolve load = iota // a variable, by its name
	alias               // the frame around it
	param               // what the frame is given
	nowhere             // undefined
)

func newSymbols(parent *symbols) *symbols {
	return &symbols{parent, map[string]load{}, map[string]bool{}, map[string]syntax.Node{}}
}

func (s *symbols) known(name string) bool {
	for ; s != nil; s = s.parent {
		if _, ok := s.refs[name]; ok {
			return true
		}
	}
	return false
}

func (s *symbols) load(name string) {
	if !s.known(name) {
		s.refs[name] = resolve
	}
}

func (s *symbols) store(name string, by syntax.Node) {
	s.stores[name] = true
	if _, ok := s.refs[name]; ok {
		return
	}
	s.first[name] = by
	s.refs[name] = nowhere
	if s.parent.known(name) {
		s.refs[name] = alias
	}
}

func (s *symbols) param(name string) {
	s.stores[name] = true
	s.refs[name] = param
}

// params declares the names of a target or an argument list.
func (s *symbols) params(nodes ...syntax.Node) {
	syntax.Walk(nodes, func(n syntax.Node) bool {
		if name, ok := n.(*syntax.Name); ok {
			s.param(name.Name)
		}
		return true
	})
}

// declare is params for a macro.
func (s *symbols) declare(args []*syntax.Name, defaults []syntax.Node) {
	for _, a := range args {
		s.param(a.Name)
	}
	s.visit(defaults...)
}

func (s *symbols) visit(nodes ...syntax.Node) {
	for _, n := range nodes {
		s.node(n)
	}
}

func (s *symbols) node(n syntax.Node) {
	switch n := n.(type) {
	case nil:
	case *syntax.If:
		s.branches(n)
	case *syntax.For:
		s.visit(n.Iter)
	case *syntax.Assign:
		s.visit(n.Node)
		s.target(n.Target)
	case *syntax.AssignBlock:
		s.target(n.Target)
	case *syntax.With:
		s.visit(n.Values...)
	case *syntax.Macro:
		s.store(n.Name, n)
	case *syntax.CallBlock:
		s.visit(n.Call)
	case *syntax.FilterBlock:
		s.visit(n.Filter)
	case *syntax.Generation:
	case *syntax.NSRef:
		s.load(n.Name)
	default: // an expression or an output
		syntax.Walk([]syntax.Node{n}, func(x syntax.Node) bool {
			if name, ok := x.(*syntax.Name); ok {
				s.load(name.Name)
			}
			return true
		})
	}
}

func (s *symbols) target(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.Name:
		s.store(n.Name, n)
	case *syntax.Tuple:
		for _, item := range n.Items {
			s.target(item)
		}
	case *syntax.NSRef:
		s.load(n.Name)
	}
}

// branches visits an if: its body, all of its elifs and its else are three
// branches to Jinja2, and a name that not all of them store is looked up.
func (s *symbols) branches(n *syntax.If) {
	s.visit(n.Branches[0].Test)
	elif := []syntax.Node{}
	if len(n.Branches) > 1 {
		elif = append(elif, &syntax.If{Branches: n.Branches[1:]})
	}
	counts := map[string]int{}
	var visited []*symbols
	for _, body := range [][]syntax.Node{n.Branches[0].Body, elif, n.Else} {
		b := s.copy()
		b.visit(body...)
		for name := range b.stores {
			if !s.stores[name] {
				counts[name]++
			}
		}
		visited = append(visited, b)
	}
	for _, b := range visited {
		for name, l := range b.refs {
			s.refs[name] = l
		}
		for name, by := range b.first {
			if _, ok := s.first[name]; !ok {
				s.first[name] = by
			}
		}
		for name := range b.stores {
			s.stores[name] = true
		}
	}
	for name, count := range counts {
		if count == len(visited) {
			continue
		}
		s.refs[name] = resolve
		if s.parent.known(name) {
			s.refs[name] = alias
		}
	}
}

func (s *symbols) copy() *symbols {
	c := newSymbols(s.parent)
	for k, v := range s.refs {
		c.refs[k] = v
	}
	for k, v := range s.stores {
		c.stores[k] = v
	}
	for k, v := range s.first {
		c.first[k] = v
	}
	return c
}

// hidden are the names that inner frames of body must find undefined before the
// frame assigns them, in the order of the text.
func (s *symbols) hidden(body []syntax.Node) (names []string) {
	done := map[string]bool{}
	syntax.Walk(body, func(n syntax.Node) bool {
		name := ""
		switch n := n.(type) {
		case *syntax.Name:
			name = n.Name
		case *syntax.Macro:
			name = n.Name
		default:
			return true
		}
		if l, ok := s.refs[name]; !ok || l != nowhere || done[name] {
			return true
		}
		done[name] = true
		if s.first[name] != n {
			names = append(names, name)
		}
		return true
	})
	return names
}
