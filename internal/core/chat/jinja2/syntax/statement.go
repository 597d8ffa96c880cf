package syntax

func (p *parser) statement() (Node, error) {
	t, err := p.expect(name, "tag name")
	if err != nil {
		return nil, err
	}
	switch t.text {
	case "if":
		return p.ifStatement()
	case "for":
		return p.forStatement()
	case "set":
		return p.set()
	case "macro":
		return p.macro()
	case "call":
		return p.callBlock()
	case "filter":
		return p.filterBlock()
	case "with":
		return p.with()
	case "print":
		return p.print()
	case "generation":
		body, err := p.closed("endgeneration")
		return &Generation{body}, err
	case "break", "continue":
		if p.loops == 0 {
			return nil, p.fail("'" + t.text + "' outside loop")
		}
		if t.text == "break" {
			return &Break{}, nil
		}
		return &Continue{}, nil
	case "block", "extends", "include", "import", "from", "autoescape":
		return nil, p.unsupported("the statement " + t.text)
	}
	return nil, p.fail("Encountered unknown tag '" + t.text + "'")
}

func (p *parser) ifStatement() (Node, error) {
	n := &If{}
	for {
		test, err := p.tuple(tupleRule{})
		if err != nil {
			return nil, err
		}
		body, err := p.block("elif", "else", "endif")
		if err != nil {
			return nil, err
		}
		n.Branches = append(n.Branches, Branch{test, body})
		switch p.next().text {
		case "elif":
			continue
		case "else":
			n.Else, err = p.closed("endif")
		}
		return n, err
	}
}

func (p *parser) forStatement() (Node, error) {
	n := &For{}
	var err error
	if n.Target, err = p.target(true, "in"); err != nil {
		return nil, err
	}
	if !p.skip("in") {
		return nil, p.unexpected("'in'")
	}
	if n.Iter, err = p.tuple(tupleRule{ends: []string{"recursive"}}); err != nil {
		return nil, err
	}
	if p.skip("if") {
		if n.Test, err = p.expression(); err != nil {
			return nil, err
		}
	}
	n.Recursive = p.skip("recursive")
	p.loops++
	n.Body, err = p.block("endfor", "else")
	p.loops--
	if err != nil {
		return nil, err
	}
	if p.next().text == "else" {
		n.Else, err = p.closed("endfor")
	}
	return n, err
}

func (p *parser) set() (Node, error) {
	target, err := p.targetNS()
	if err != nil {
		return nil, err
	}
	if p.skipOp("=") {
		value, err := p.tuple(tupleRule{condexpr: true})
		return &Assign{target, value}, err
	}
	filter, err := p.filters(nil)
	if err != nil {
		return nil, err
	}
	body, err := p.closed("endset")
	return &AssignBlock{target, filter, body}, err
}

func (p *parser) with() (Node, error) {
	n := &With{}
	for p.now().kind != blockEnd {
		if len(n.Targets) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		target, err := p.target(true)
		if err != nil {
			return nil, err
		}
		if err := p.expectOp("="); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		n.Targets, n.Values = append(n.Targets, target), append(n.Values, value)
	}
	var err error
	n.Body, err = p.closed("endwith")
	return n, err
}

// signature reads (a, b=default).
func (p *parser) signature() (args []*Name, defaults []Node, err error) {
	if err := p.expectOp("("); err != nil {
		return nil, nil, err
	}
	for !p.now().op(")") {
		if len(args) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, nil, err
			}
		}
		t, err := p.expect(name, "name")
		if err != nil {
			return nil, nil, err
		}
		if p.skipOp("=") {
			value, err := p.expression()
			if err != nil {
				return nil, nil, err
			}
			defaults = append(defaults, value)
		} else if len(defaults) > 0 {
			return nil, nil, p.fail("non-default argument follows default argument")
		}
		args = append(args, &Name{t.text})
	}
	p.next()
	return args, defaults, nil
}

// function reads a body that is a function of its own: a loop outside of it is
// not its loop.
func (p *parser) function(end string) ([]Node, error) {
	loops := p.loops
	p.loops = 0
	defer func() { p.loops = loops }()
	return p.closed(end)
}

func (p *parser) macro() (Node, error) {
	t, err := p.expect(name, "name")
	if err != nil {
		return nil, err
	}
	n := &Macro{Name: t.text}
	if n.Args, n.Defaults, err = p.signature(); err != nil {
		return nil, err
	}
	n.Body, err = p.function("endmacro")
	return n, err
}

func (p *parser) callBlock() (Node, error) {
	n := &CallBlock{}
	var err error
	if p.now().op("(") {
		if n.Args, n.Defaults, err = p.signature(); err != nil {
			return nil, err
		}
	}
	expr, err := p.expression()
	if err != nil {
		return nil, err
	}
	var ok bool
	if n.Call, ok = expr.(*Call); !ok {
		return nil, p.fail("expected call")
	}
	n.Body, err = p.function("endcall")
	return n, err
}

func (p *parser) filterBlock() (Node, error) {
	filter, err := p.filter(nil)
	if err != nil {
		return nil, err
	}
	if filter, err = p.filters(filter); err != nil {
		return nil, err
	}
	body, err := p.closed("endfilter")
	return &FilterBlock{filter, body}, err
}

func (p *parser) print() (Node, error) {
	n := &Output{}
	for p.now().kind != blockEnd {
		if len(n.Nodes) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		n.Nodes = append(n.Nodes, e)
	}
	return n, nil
}
