package syntax

// target reads what a for, with or set assigns to: a name or, with tuple, a
// comma list of names.
func (p *parser) target(tuple bool, ends ...string) (Node, error) {
	rule := tupleRule{primaries: true, ends: ends}
	item := p.primary
	if tuple {
		item = func() (Node, error) { return p.tuple(rule) }
	}
	n, err := item()
	if err == nil && !assignable(n) {
		err = p.fail("can't assign to this")
	}
	return n, err
}

// targetNS is target for a set, which may also write an attribute of a
// namespace.
func (p *parser) targetNS() (Node, error) {
	if t := p.now(); t.kind == name && p.peek().op(".") {
		p.next()
		p.next()
		attr, err := p.expect(name, "name")
		if err == nil && p.now().op(",") {
			err = p.unsupported("a list with an attribute to assign to")
		}
		return &NSRef{t.text, attr.text}, err
	}
	return p.target(true)
}

func assignable(n Node) bool {
	switch n := n.(type) {
	case *Name:
		return true
	case *Tuple:
		for _, item := range n.Items {
			if !assignable(item) {
				return false
			}
		}
		return len(n.Items) > 0
	}
	return false
}
