package syntax

// Node is a statement or an expression. The types and their names are those of
// Jinja2's own tree, because engines decide by that tree.
type Node interface{ children() []Node }

// Statements.
type (
	// Output prints data and expressions.
	Output struct{ Nodes []Node } // of TemplateData and expressions
	// TemplateData is text outside of tags.
	TemplateData struct{ Text string }
	// If is a chain of branches; Else is nil without one.
	If struct {
		Branches []Branch
		Else     []Node
	}
	// Branch is one test of an If.
	Branch struct {
		Test Node
		Body []Node
	}
	// For is a loop. Test filters, Else runs for an empty sequence.
	For struct {
		Target     Node
		Iter, Test Node
		Body, Else []Node
		Recursive  bool
	}
	// Assign is {% set target = node %}.
	Assign struct{ Target, Node Node }
	// AssignBlock is {% set target | filter %}…{% endset %}.
	AssignBlock struct {
		Target Node
		Filter Node // a Filter chain over nil, or nil
		Body   []Node
	}
	// With binds names in a scope of its own.
	With struct {
		Targets, Values []Node
		Body            []Node
	}
	// Macro is a function that prints.
	Macro struct {
		Name     string
		Args     []*Name
		Defaults []Node // of the last len(Defaults) arguments
		Body     []Node
	}
	// CallBlock calls a macro with its body as caller.
	CallBlock struct {
		Args     []*Name
		Defaults []Node
		Call     *Call
		Body     []Node
	}
	// FilterBlock prints its body through a filter.
	FilterBlock struct {
		Filter Node
		Body   []Node
	}
	// Generation is transformers' block, which has a scope and no other effect.
	Generation struct{ Body []Node }
	// Break ends a loop.
	Break struct{}
	// Continue ends one run of a loop.
	Continue struct{}
)

// Expressions.
type (
	// Name is a variable.
	Name struct{ Name string }
	// NSRef is the attribute of a namespace that a set writes.
	NSRef struct{ Name, Attr string }
	// Const is nil, a bool, int64, *big.Int, float64 or string.
	Const struct{ Value any }
	// Tuple is a comma list.
	Tuple struct{ Items []Node }
	// List is [a, b].
	List struct{ Items []Node }
	// Dict is {a: b}.
	Dict struct{ Keys, Values []Node }
	// CondExpr is a if test else b; Else is nil without one.
	CondExpr struct{ Test, Then, Else Node }
	// BinExpr is an operator between two: or, and, +, -, *, /, //, %, **.
	BinExpr struct {
		Op          string
		Left, Right Node
	}
	// UnaryExpr is not, - or +.
	UnaryExpr struct {
		Op   string
		Node Node
	}
	// Concat is a ~ b ~ c.
	Concat struct{ Nodes []Node }
	// Compare is a chain of comparisons.
	Compare struct {
		Expr Node
		Ops  []Operand
	}
	// Operand is one step of a Compare: ==, !=, <, <=, >, >=, in, not in.
	Operand struct {
		Op   string
		Expr Node
	}
	// Getattr is node.attr.
	Getattr struct {
		Node Node
		Attr string
	}
	// Getitem is node[arg]; Arg may be a Slice.
	Getitem struct{ Node, Arg Node }
	// Slice is start:stop:step, each nil when not given.
	Slice struct{ Start, Stop, Step Node }
	// Call is node(…).
	Call struct {
		Node Node
		Arguments
	}
	// Filter is node | name(…). Node is nil at the start of a filter block.
	Filter struct {
		Node Node
		Name string
		Arguments
	}
	// Test is node is name(…).
	Test struct {
		Node Node
		Name string
		Arguments
	}
	// Arguments are what a call, filter or test is given.
	Arguments struct {
		Args     []Node
		Kwargs   []Keyword
		DynArgs  Node // *x
		DynKwarg Node // **x
	}
	// Keyword is key=value.
	Keyword struct {
		Key   string
		Value Node
	}
)

func (n *Output) children() []Node { return n.Nodes }
func (*TemplateData) children() []Node {
	return nil
}
func (n *If) children() (c []Node) {
	for _, b := range n.Branches {
		c = append(append(c, b.Test), b.Body...)
	}
	return append(c, n.Else...)
}
func (n *For) children() []Node {
	c := append([]Node{n.Target, n.Iter}, n.Body...)
	return append(append(c, n.Else...), n.Test)
}
func (n *Assign) children() []Node { return []Node{n.Target, n.Node} }
func (n *AssignBlock) children() []Node {
	return append([]Node{n.Target, n.Filter}, n.Body...)
}
func (n *With) children() []Node {
	return append(append(append([]Node{}, n.Targets...), n.Values...), n.Body...)
}
func (n *Macro) children() []Node {
	return append(append(names(n.Args), n.Defaults...), n.Body...)
}
func (n *CallBlock) children() []Node {
	c := append(append([]Node{n.Call}, names(n.Args)...), n.Defaults...)
	return append(c, n.Body...)
}
func (n *FilterBlock) children() []Node { return append(append([]Node{}, n.Body...), n.Filter) }
func (n *Generation) children() []Node  { return n.Body }
func (*Break) children() []Node         { return nil }
func (*Continue) children() []Node      { return nil }

func (*Name) children() []Node        { return nil }
func (*NSRef) children() []Node       { return nil }
func (*Const) children() []Node       { return nil }
func (n *Tuple) children() []Node     { return n.Items }
func (n *List) children() []Node      { return n.Items }
func (n *Dict) children() []Node      { return append(append([]Node{}, n.Keys...), n.Values...) }
func (n *CondExpr) children() []Node  { return []Node{n.Test, n.Then, n.Else} }
func (n *BinExpr) children() []Node   { return []Node{n.Left, n.Right} }
func (n *UnaryExpr) children() []Node { return []Node{n.Node} }
func (n *Concat) children() []Node    { return n.Nodes }
func (n *Compare) children() []Node {
	c := []Node{n.Expr}
	for _, o := range n.Ops {
		c = append(c, o.Expr)
	}
	return c
}
func (n *Getattr) children() []Node { return []Node{n.Node} }
func (n *Getitem) children() []Node { return []Node{n.Node, n.Arg} }
func (n *Slice) children() []Node   { return []Node{n.Start, n.Stop, n.Step} }
func (n *Call) children() []Node    { return append([]Node{n.Node}, n.all()...) }
func (n *Filter) children() []Node  { return append([]Node{n.Node}, n.all()...) }
func (n *Test) children() []Node    { return append([]Node{n.Node}, n.all()...) }

func (a *Arguments) all() []Node {
	c := append([]Node{}, a.Args...)
	for _, k := range a.Kwargs {
		c = append(c, k.Value)
	}
	return append(c, a.DynArgs, a.DynKwarg)
}

func names(list []*Name) []Node {
	c := make([]Node, len(list))
	for i, n := range list {
		c[i] = n
	}
	return c
}

// Walk calls visit for each node below the given ones, a node before what is in
// it and in the order of the text. It stops when visit returns false.
func Walk(nodes []Node, visit func(Node) bool) bool {
	for _, n := range nodes {
		if n == nil {
			continue
		}
		if !visit(n) || !Walk(n.children(), visit) {
			return false
		}
	}
	return true
}
