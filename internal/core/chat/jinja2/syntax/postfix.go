package syntax

import "slices"

// postfix reads what is attached to a value: .attr, [item], (call).
func (p *parser) postfix(n Node) (_ Node, err error) {
	for {
		switch {
		case p.now().op("."):
			n, err = p.attribute(n)
		case p.now().op("["):
			n, err = p.subscript(n)
		case p.now().op("("):
			n, err = p.call(n)
		default:
			return n, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// filterExpr reads filters and tests, and calls of their results.
func (p *parser) filterExpr(n Node) (_ Node, err error) {
	for {
		switch {
		case p.now().op("|"):
			n, err = p.filters(n)
		case p.now().is("is"):
			n, err = p.test(n)
		case p.now().op("("):
			n, err = p.call(n)
		default:
			return n, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *parser) attribute(n Node) (Node, error) {
	p.next()
	t := p.now()
	switch t.kind {
	case name:
		p.next()
		return &Getattr{n, t.text}, nil
	case integer:
		p.next()
		return &Getitem{n, &Const{t.value}}, nil
	}
	return nil, p.unexpected("name or number")
}

func (p *parser) subscript(n Node) (Node, error) {
	p.next()
	var args []Node
	for !p.now().op("]") {
		if len(args) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		arg, err := p.subscribed()
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	p.next()
	if len(args) == 1 {
		return &Getitem{n, args[0]}, nil
	}
	return &Getitem{n, &Tuple{args}}, nil
}

// subscribed reads an index or a slice.
func (p *parser) subscribed() (Node, error) {
	s := &Slice{}
	for i, part := range []*Node{&s.Start, &s.Stop, &s.Step} {
		if i > 0 && !p.skipOp(":") {
			break
		}
		if t := p.now(); t.op(":") || i > 0 && (t.op("]") || t.op(",")) {
			continue
		}
		n, err := p.expression()
		if err != nil {
			return nil, err
		}
		if i == 0 && !p.now().op(":") {
			return n, nil
		}
		*part = n
	}
	return s, nil
}

func (p *parser) call(n Node) (Node, error) {
	args, err := p.arguments()
	return &Call{n, args}, err
}

func (p *parser) arguments() (a Arguments, err error) {
	if err := p.expectOp("("); err != nil {
		return a, err
	}
	for first := true; !p.now().op(")"); first = false {
		if !first {
			if err := p.expectOp(","); err != nil {
				return a, err
			}
			if p.now().op(")") {
				break
			}
		}
		ok := a.DynKwarg == nil
		switch {
		case p.skipOp("*"):
			ok = ok && a.DynArgs == nil
			a.DynArgs, err = p.expression()
		case p.skipOp("**"):
			a.DynKwarg, err = p.expression()
		case p.now().kind == name && p.peek().op("="):
			key := p.next().text
			p.next()
			if slices.ContainsFunc(a.Kwargs, func(k Keyword) bool { return k.Key == key }) {
				return a, p.fail("keyword argument repeated: " + key)
			}
			var value Node
			value, err = p.expression()
			a.Kwargs = append(a.Kwargs, Keyword{key, value})
		default:
			ok = ok && a.DynArgs == nil && len(a.Kwargs) == 0
			var value Node
			value, err = p.expression()
			a.Args = append(a.Args, value)
		}
		if err != nil {
			return a, err
		}
		if !ok {
			return a, p.fail("invalid syntax for function call expression")
		}
	}
	p.next()
	return a, nil
}

// filters reads | a | b.
func (p *parser) filters(n Node) (Node, error) {
	for p.skipOp("|") {
		var err error
		if n, err = p.filter(n); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// filter reads a filter's name and arguments.
func (p *parser) filter(n Node) (Node, error) {
	f := &Filter{Node: n}
	var err error
	if f.Name, err = p.dotted(); err != nil {
		return nil, err
	}
	if p.now().op("(") {
		f.Arguments, err = p.arguments()
	}
	return f, err
}

func (p *parser) dotted() (string, error) {
	t, err := p.expect(name, "name")
	text := t.text
	for err == nil && p.skipOp(".") {
		t, err = p.expect(name, "name")
		text += "." + t.text
	}
	return text, err
}

// test reads is name, with an argument in parentheses or a single one without.
func (p *parser) test(n Node) (Node, error) {
	p.next()
	negated := p.skip("not")
	t := &Test{Node: n}
	var err error
	if t.Name, err = p.dotted(); err != nil {
		return nil, err
	}
	if p.now().op("(") {
		if t.Arguments, err = p.arguments(); err != nil {
			return nil, err
		}
	} else if p.startsArgument() {
		if p.now().is("is") {
			return nil, p.fail("You cannot chain multiple tests with is")
		}
		arg, err := p.primary()
		if err != nil {
			return nil, err
		}
		if arg, err = p.postfix(arg); err != nil {
			return nil, err
		}
		t.Args = []Node{arg}
	}
	if negated {
		return &UnaryExpr{"not", t}, nil
	}
	return t, nil
}

func (p *parser) startsArgument() bool {
	t := p.now()
	switch t.kind {
	case name:
		return !t.is("else") && !t.is("or") && !t.is("and")
	case str, integer, float:
		return true
	}
	return t.op("[") || t.op("{")
}
