package chat

import "github.com/eppctl/eppctl/internal/core/chat/jinja2"

// readTools reads tools as vLLM passes them on: through its model of a tool,
// whose fields come in its own order, with null for what is not given, and
// without what it does not know (vLLM 0.32.0, FunctionDefinition).
func (r *request) readTools(v jinja2.Value) error {
	tools := member(v, "tools")
	r.tools = jinja2.None()
	if tools.IsNone() {
		if !r.choice.IsNone() && !isText(r.choice, "none") {
			return rejected("tool_choice without tools")
		}
		return nil
	}
	switch {
	case !tools.IsList():
		return rejected("tools is not a list")
	case tools.AsList().Len() == 0:
		return rejected("tools is empty")
	}
	out := make([]jinja2.Value, 0, tools.AsList().Len())
	names := map[string]bool{}
	for _, t := range tools.AsList().Items {
		tool, name, err := dumpTool(t)
		if err != nil {
			return err
		}
		out = append(out, tool)
		names[name] = true
	}
	r.tools = jinja2.List(out)
	return r.checkChoice(names)
}

func isText(v jinja2.Value, s string) bool { return jinja2.IsText(v) && v.AsString() == s }

func dumpTool(t jinja2.Value) (tool jinja2.Value, name string, err error) {
	if !t.IsDict() {
		return tool, "", rejected("a tool is not an object")
	}
	if kind, ok := jinja2.Get(t, "type"); ok && !isText(kind, "function") {
		return tool, "", rejected("a tool is not a function")
	}
	f := member(t, "function")
	if !f.IsDict() {
		return tool, "", rejected("a tool has no function")
	}
	n := member(f, "name")
	if !jinja2.IsText(n) {
		return tool, "", rejected("a function has no name")
	}
	description, parameters := member(f, "description"), member(f, "parameters")
	if !description.IsNone() && !jinja2.IsText(description) {
		return tool, "", rejected("the description of a function is not text")
	}
	if !parameters.IsNone() && !parameters.IsDict() {
		return tool, "", rejected("the parameters of a function are not an object")
	}
	function := jinja2.Dict()
	jinja2.Put(function, "name", n)
	jinja2.Put(function, "description", description)
	jinja2.Put(function, "parameters", parameters)
	tool = jinja2.Dict()
	jinja2.Put(tool, "type", jinja2.String("function"))
	jinja2.Put(tool, "function", function)
	strict, deferred := member(f, "strict"), member(f, "defer_loading")
	outer := member(t, "defer_loading")
	if deferred.IsNone() {
		deferred = outer
	}
	for _, b := range []struct {
		in   jinja2.Value
		key  string
		flag jinja2.Value
	}{{function, "strict", strict}, {function, "defer_loading", deferred}, {tool, "defer_loading", outer}} {
		switch {
		case b.flag.IsNone():
		case b.flag.IsBool():
			jinja2.Put(b.in, b.key, b.flag)
		default:
			return tool, "", unrenderable(b.key + " of a tool is not a boolean")
		}
	}
	return tool, n.AsString(), nil
}

func (r *request) checkChoice(names map[string]bool) error {
	c := r.choice
	switch {
	case c.IsNone(), isText(c, "none"), isText(c, "auto"), isText(c, "required"):
		return nil
	case !c.IsDict():
		return rejected("tool_choice is none of those known")
	}
	if !names[text(member(c, "function"), "name")] {
		return rejected("tool_choice names no tool of the request")
	}
	return nil
}
