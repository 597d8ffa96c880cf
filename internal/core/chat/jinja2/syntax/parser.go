package syntax

import "strconv"

// Limits of what is parsed at all. The largest template seen in a model
// repository has 30 kB and nests 14 deep (the 22 templates of the tests).
const (
	MaxSource = 256 << 10 // bytes
	maxDepth  = 100       // statements in statements, brackets in brackets
)

// Parse reads a template. The error is an *Error or an *Unsupported.
func Parse(source string) ([]Node, error) {
	if len(source) > MaxSource {
		return nil, &Unsupported{1, "a template of " + strconv.Itoa(len(source)) + " bytes"}
	}
	tokens, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	return p.body()
}

// parser is a recursive descent over tokens, a method per rule of Jinja2's
// grammar.
type parser struct {
	tokens []token
	pos    int
	depth  int
	loops  int // of the current macro
}

func (p *parser) now() token { return p.tokens[p.pos] }

func (p *parser) next() token {
	t := p.tokens[p.pos]
	if t.kind != eof {
		p.pos++
	}
	return t
}

func (p *parser) peek() token { return p.tokens[min(p.pos+1, len(p.tokens)-1)] }

func (p *parser) skip(word string) bool {
	if p.now().is(word) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipOp(op string) bool {
	if p.now().op(op) {
		p.next()
		return true
	}
	return false
}

func (p *parser) fail(text string) error { return &Error{p.now().line, text} }

func (p *parser) unsupported(what string) error { return &Unsupported{p.now().line, what} }

func (p *parser) unexpected(want string) error {
	return p.fail("expected " + want + ", got " + p.now().describe())
}

func (p *parser) expect(k kind, want string) (token, error) {
	if p.now().kind != k {
		return token{}, p.unexpected(want)
	}
	return p.next(), nil
}

func (p *parser) expectOp(op string) error {
	if !p.skipOp(op) {
		return p.unexpected("'" + op + "'")
	}
	return nil
}

// enter counts a level of nesting; leave undoes it.
func (p *parser) enter() error {
	if p.depth++; p.depth > maxDepth {
		return p.unsupported("nesting deeper than " + strconv.Itoa(maxDepth))
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// body reads up to one of the end words, which it leaves, or to the end of the
// template when there are none.
func (p *parser) body(ends ...string) ([]Node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var out []Node
	print := func(n Node) {
		if len(out) > 0 {
			if o, ok := out[len(out)-1].(*Output); ok {
				o.Nodes = append(o.Nodes, n)
				return
			}
		}
		out = append(out, &Output{Nodes: []Node{n}})
	}
	for {
		switch t := p.next(); t.kind {
		case eof:
			if len(ends) > 0 {
				return nil, p.fail("Unexpected end of template. Jinja was looking for '" + ends[0] + "'")
			}
			return out, nil
		case data:
			print(&TemplateData{t.text})
		case varBegin:
			n, err := p.tuple(tupleRule{condexpr: true})
			if err != nil {
				return nil, err
			}
			if _, err := p.expect(varEnd, "end of print statement"); err != nil {
				return nil, err
			}
			print(n)
		case blockBegin:
			for _, end := range ends {
				if p.now().is(end) {
					return out, nil
				}
			}
			n, err := p.statement()
			if err != nil {
				return nil, err
			}
			out = append(out, n)
			if _, err := p.expect(blockEnd, "end of statement block"); err != nil {
				return nil, err
			}
		default:
			return nil, p.fail("unexpected " + t.describe())
		}
	}
}

// block reads the rest of a block tag, its body, and one of the end words.
func (p *parser) block(ends ...string) ([]Node, error) {
	p.skipOp(":") // for those who write Python
	if _, err := p.expect(blockEnd, "end of statement block"); err != nil {
		return nil, err
	}
	return p.body(ends...)
}

// closed is a block that has but one end, which is taken.
func (p *parser) closed(end string) ([]Node, error) {
	body, err := p.block(end)
	if err == nil {
		p.next()
	}
	return body, err
}
