package syntax

// expression reads an expression with conditions: a if b else c.
func (p *parser) expression() (Node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	n, err := p.or()
	for err == nil && p.skip("if") {
		cond := &CondExpr{Then: n}
		if cond.Test, err = p.or(); err != nil {
			return nil, err
		}
		if p.skip("else") {
			cond.Else, err = p.expression()
		}
		n = cond
	}
	return n, err
}

// binary reads operands of one precedence, grouped from the left. match returns
// the operator that stands here, "" for none.
func (p *parser) binary(operand func() (Node, error), match func(token) string) (Node, error) {
	n, err := operand()
	for err == nil {
		op := match(p.now())
		if op == "" {
			return n, nil
		}
		p.next()
		var right Node
		right, err = operand()
		n = &BinExpr{op, n, right}
	}
	return nil, err
}

func word(w string) func(token) string {
	return func(t token) string {
		if t.is(w) {
			return w
		}
		return ""
	}
}

func anyOp(ops ...string) func(token) string {
	return func(t token) string {
		for _, op := range ops {
			if t.op(op) {
				return op
			}
		}
		return ""
	}
}

func (p *parser) or() (Node, error)    { return p.binary(p.and, word("or")) }
func (p *parser) and() (Node, error)   { return p.binary(p.not, word("and")) }
func (p *parser) math1() (Node, error) { return p.binary(p.concat, anyOp("+", "-")) }
func (p *parser) math2() (Node, error) { return p.binary(p.pow, anyOp("*", "/", "//", "%")) }
func (p *parser) pow() (Node, error)   { return p.binary(p.unaryFiltered, anyOp("**")) }

func (p *parser) not() (Node, error) {
	if !p.skip("not") {
		return p.compare()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	n, err := p.not()
	return &UnaryExpr{"not", n}, err
}

func (p *parser) compare() (Node, error) {
	first, err := p.math1()
	if err != nil {
		return nil, err
	}
	n := &Compare{Expr: first}
	for {
		op := anyOp("==", "!=", "<", "<=", ">", ">=")(p.now())
		switch {
		case op != "":
		case p.now().is("in"):
			op = "in"
		case p.now().is("not") && p.peek().is("in"):
			op = "not in"
			p.next()
		case len(n.Ops) == 0:
			return first, nil
		default:
			return n, nil
		}
		p.next()
		e, err := p.math1()
		if err != nil {
			return nil, err
		}
		n.Ops = append(n.Ops, Operand{op, e})
	}
}

func (p *parser) concat() (Node, error) {
	n, err := p.math2()
	if err != nil || !p.now().op("~") {
		return n, err
	}
	all := []Node{n}
	for p.skipOp("~") {
		if n, err = p.math2(); err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return &Concat{all}, nil
}

func (p *parser) unaryFiltered() (Node, error) {
	n, err := p.unary()
	if err != nil {
		return nil, err
	}
	return p.filterExpr(n)
}

// unary reads a sign or a primary, and what is attached to it. A sign binds
// before filters and tests.
func (p *parser) unary() (n Node, err error) {
	if op := anyOp("-", "+")(p.now()); op != "" {
		p.next()
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		if n, err = p.unary(); err != nil {
			return nil, err
		}
		n = &UnaryExpr{op, n}
	} else if n, err = p.primary(); err != nil {
		return nil, err
	}
	return p.postfix(n)
}

func (p *parser) primary() (Node, error) {
	t := p.now()
	switch {
	case t.kind == name:
		p.next()
		switch t.text {
		case "true", "True":
			return &Const{true}, nil
		case "false", "False":
			return &Const{false}, nil
		case "none", "None":
			return &Const{nil}, nil
		}
		return &Name{t.text}, nil
	case t.kind == str:
		text := ""
		for p.now().kind == str {
			text += p.next().text
		}
		return &Const{text}, nil
	case t.kind == integer || t.kind == float:
		p.next()
		return &Const{t.value}, nil
	case t.op("("):
		p.next()
		n, err := p.tuple(tupleRule{condexpr: true, parens: true})
		if err != nil {
			return nil, err
		}
		return n, p.expectOp(")")
	case t.op("["):
		return p.list()
	case t.op("{"):
		return p.dict()
	}
	return nil, p.fail("unexpected " + t.describe())
}

func (p *parser) list() (Node, error) {
	p.next()
	n := &List{}
	for !p.now().op("]") {
		if len(n.Items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
			if p.now().op("]") {
				break
			}
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		n.Items = append(n.Items, e)
	}
	return n, p.expectOp("]")
}

func (p *parser) dict() (Node, error) {
	p.next()
	n := &Dict{}
	for !p.now().op("}") {
		if len(n.Keys) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
			if p.now().op("}") {
				break
			}
		}
		key, err := p.expression()
		if err != nil {
			return nil, err
		}
		if err := p.expectOp(":"); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		n.Keys, n.Values = append(n.Keys, key), append(n.Values, value)
	}
	return n, p.expectOp("}")
}

// tupleRule says what a comma list may hold and where it ends.
type tupleRule struct {
	primaries bool     // names and literals only
	condexpr  bool     // conditions are part of an item
	parens    bool     // it stands in parentheses, so it may be empty
	ends      []string // words that end it
}

// tuple reads an expression, or a Tuple when there is a comma.
func (p *parser) tuple(rule tupleRule) (Node, error) {
	item := p.or
	switch {
	case rule.primaries:
		item = p.primary
	case rule.condexpr:
		item = p.expression
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var items []Node
	for {
		if p.tupleEnds(rule) {
			break
		}
		n, err := item()
		if err != nil {
			return nil, err
		}
		items = append(items, n)
		if !p.skipOp(",") {
			if len(items) == 1 {
				return n, nil
			}
			break
		}
	}
	if len(items) == 0 && !rule.parens {
		return nil, p.unexpected("an expression")
	}
	return &Tuple{items}, nil
}

func (p *parser) tupleEnds(rule tupleRule) bool {
	t := p.now()
	if t.kind == varEnd || t.kind == blockEnd || t.op(")") {
		return true
	}
	for _, end := range rule.ends {
		if t.is(end) {
			return true
		}
	}
	return false
}
