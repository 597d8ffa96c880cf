package chat

import (
	"slices"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"
)

// Format is how an engine passes a message's content to a template.
type Format uint8

const (
	// AutoFormat is found out from the template.
	AutoFormat Format = iota
	// StringFormat is text: parts are joined.
	StringFormat
	// PartsFormat is a list of parts: text is wrapped into one. Engines call
	// it openai.
	PartsFormat
)

var formatNames = []string{AutoFormat: "auto", StringFormat: "string", PartsFormat: "openai"}

// FormatNames are the values of vLLM's --chat-template-content-format.
func FormatNames() []string { return slices.Clone(formatNames) }

// FormatOf is the format of a name; "" and what is none are AutoFormat.
func FormatOf(name string) Format { return Format(max(slices.Index(formatNames, name), 0)) }

func (f Format) String() string { return formatNames[f] }

// detectFormat decides as vLLM 0.32.0 does (renderers/hf.py), by the tree: parts
// if some loop runs over
//
//   - message.content or message["content"], filtered or sliced too, where
//     message is the item of a loop over messages or over a variable that was
//     set from it;
//   - inside a macro, a parameter that some call gives such a content to;
//   - outside of macros, a variable named content.
//
// Where vLLM's own search fails, on a loop or an assignment over several names,
// it takes string.
func detectFormat(tree []syntax.Node) Format {
	d := detector{tree: tree}
	if d.loopsOverContent() && !d.failed {
		return PartsFormat
	}
	return StringFormat
}

type detector struct {
	tree     []syntax.Node
	messages []string // variables that hold a message
	failed   bool     // vLLM's search ends in an error before it finds a loop
}

// elements strips filters, tests and slices off an expression.
func elements(n syntax.Node) syntax.Node {
	for {
		switch x := n.(type) {
		case *syntax.Filter:
			n = x.Node
		case *syntax.Test:
			n = x.Node
		case *syntax.Getitem:
			if _, ok := x.Arg.(*syntax.Slice); !ok {
				return n
			}
			n = x.Node
		default:
			return n
		}
	}
}

func isVariable(n syntax.Node, name string) bool {
	x, ok := n.(*syntax.Name)
	return ok && x.Name == name
}

// isContent reports whether n is the content of a message variable.
func (d *detector) isContent(n syntax.Node) bool {
	for _, m := range d.messages {
		switch x := elements(n).(type) {
		case *syntax.Getattr:
			if isVariable(x.Node, m) && x.Attr == "content" {
				return true
			}
		case *syntax.Getitem:
			c, ok := x.Arg.(*syntax.Const)
			if ok && isVariable(x.Node, m) && c.Value == "content" {
				return true
			}
		}
	}
	return false
}

// targetName is a target that is one name; any other fails vLLM's search.
func (d *detector) targetName(n syntax.Node) string {
	if name, ok := n.(*syntax.Name); ok {
		return name.Name
	}
	d.failed = true
	return ""
}

// conversations are messages and the variables set from it.
func (d *detector) conversations() []string {
	names := []string{"messages"}
	for i := 0; i < len(names) && len(names) < 100; i++ {
		syntax.Walk(d.tree, func(n syntax.Node) bool {
			a, ok := n.(*syntax.Assign)
			if ok && isVariable(elements(a.Node), names[i]) {
				if to := d.targetName(a.Target); to != names[i] {
					names = append(names, to)
				}
			}
			return !d.failed
		})
	}
	// Two variables set from each other: vLLM never ends, so no engine runs it.
	return names
}

func (d *detector) findMessages() {
	names := d.conversations()
	syntax.Walk(d.tree, func(n syntax.Node) bool {
		loop, ok := n.(*syntax.For)
		if !ok {
			return !d.failed
		}
		for _, name := range names {
			if isVariable(elements(loop.Iter), name) {
				d.messages = append(d.messages, d.targetName(loop.Target))
				break
			}
		}
		return !d.failed
	})
}

func (d *detector) loopsOverContent() bool {
	if d.findMessages(); d.failed {
		return false
	}
	parameters := map[*syntax.For]map[string]bool{} // of loops in macros
	syntax.Walk(d.tree, func(n syntax.Node) bool {
		if m, ok := n.(*syntax.Macro); ok {
			given := d.contentParameters(m)
			syntax.Walk(m.Body, func(n syntax.Node) bool {
				if loop, ok := n.(*syntax.For); ok && (len(given) > 0 || parameters[loop] == nil) {
					parameters[loop] = given
				}
				return true
			})
		}
		return true
	})
	found := false
	syntax.Walk(d.tree, func(n syntax.Node) bool {
		loop, ok := n.(*syntax.For)
		if !ok {
			return true
		}
		variable := ""
		if name, ok := loop.Iter.(*syntax.Name); ok {
			variable = name.Name
		}
		given, inMacro := parameters[loop]
		if d.isContent(loop.Iter) || given[variable] || !inMacro && variable == "content" {
			d.targetName(loop.Target)
			found = true
		}
		return !found
	})
	return found
}

// contentParameters are the parameters of a macro that some call gives the
// content of a message to.
func (d *detector) contentParameters(m *syntax.Macro) map[string]bool {
	given := map[string]bool{}
	syntax.Walk(d.tree, func(n syntax.Node) bool {
		call, ok := n.(*syntax.Call)
		if !ok || !isVariable(call.Node, m.Name) {
			return true
		}
		for i, arg := range call.Args {
			if i < len(m.Args) && d.isContent(arg) {
				given[m.Args[i].Name] = true
			}
		}
		for _, k := range call.Kwargs {
			for _, arg := range m.Args {
				if arg.Name == k.Key && d.isContent(k.Value) {
					given[k.Key] = true
				}
			}
		}
		return true
	})
	return given
}
