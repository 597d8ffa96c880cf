package chat

import "github.com/eppctl/eppctl/internal/core/chat/jinja2"

// anthropicTools are the tools of a request to /v1/messages at the end of its
// conversation, which may add and remove some (vLLM 0.32.0,
// entrypoints/anthropic/serving.py, _resolve_tools): a list, or None.
func anthropicTools(v jinja2.Value, messages []jinja2.Value) (jinja2.Value, error) {
	none := jinja2.None()
	given := member(v, "tools")
	if !given.IsNone() && !given.IsList() {
		return none, rejected("tools is not a list")
	}
	var tools []jinja2.Value
	if given.IsList() {
		tools = given.AsList().Items
	}
	for _, t := range tools {
		if err := checkTool(t); err != nil {
			return none, err
		}
	}
	changed := false
	for _, m := range messages {
		content := member(m, "content")
		if !content.IsList() {
			continue
		}
		for _, block := range content.AsList().Items {
			switch kind := text(block, "type"); kind {
			case "tool_addition", "tool_removal":
				if !changed {
					tools, changed = lastOfName(tools), true
				}
				var err error
				if tools, err = changeTools(tools, kind == "tool_addition", member(block, "tool")); err != nil {
					return none, err
				}
			}
		}
	}
	if given.IsNone() && !changed {
		return none, nil
	}
	var out []jinja2.Value
	for _, t := range tools {
		if !member(t, removedMark).IsNone() {
			continue
		}
		tool, err := chatTool(t)
		if err != nil {
			return none, err
		}
		out = append(out, tool)
	}
	return jinja2.List(out), nil
}

// removedMark marks a tool that was removed and keeps its place. No JSON makes it.
const removedMark = "\xffremoved"

// checkTool refuses what is no tool with a schema; it completes the schema.
func checkTool(t jinja2.Value) error {
	if !t.IsDict() {
		return rejected("a tool is not an object")
	}
	if !jinja2.IsText(member(t, "name")) {
		return rejected("a tool has no name")
	}
	schema := member(t, "input_schema")
	if !schema.IsDict() {
		return rejected("a tool has no input_schema")
	}
	if _, typed := jinja2.Get(schema, "type"); !typed {
		jinja2.Put(schema, "type", jinja2.String("object"))
	}
	return nil
}

// lastOfName keeps of tools of one name the last, at the place of the first.
func lastOfName(tools []jinja2.Value) []jinja2.Value {
	var out []jinja2.Value
	for _, t := range tools {
		out = putTool(out, t)
	}
	return out
}

func putTool(tools []jinja2.Value, tool jinja2.Value) []jinja2.Value {
	if i := toolAt(tools, text(tool, "name")); i >= 0 {
		tools[i] = tool
		return tools
	}
	return append(tools, tool)
}

func toolAt(tools []jinja2.Value, name string) int {
	for i, t := range tools {
		if text(t, "name") == name {
			return i
		}
	}
	return -1
}

// changeTools adds or removes the tool that a block names or defines.
func changeTools(tools []jinja2.Value, add bool, change jinja2.Value) ([]jinja2.Value, error) {
	if !change.IsDict() {
		return nil, rejected("a change of tools without a tool")
	}
	switch kind := text(change, "type"); {
	case kind == "tool_definition" && add:
		defined := member(change, "definition")
		if err := checkTool(defined); err != nil {
			return nil, err
		}
		return putTool(tools, defined), nil
	case kind != "tool_reference":
		return nil, rejected("a change of tools of a kind that is not known")
	}
	i := toolAt(tools, text(change, "name"))
	if i < 0 {
		return nil, rejected("a change of a tool that is not declared")
	}
	tools[i] = jinja2.Copy(tools[i])
	jinja2.Delete(tools[i], removedMark)
	if add {
		jinja2.Delete(tools[i], "defer_loading")
	} else {
		jinja2.Put(tools[i], removedMark, jinja2.Bool(true))
	}
	return tools, nil
}

// chatTool is a tool in the form of the chat API.
func chatTool(t jinja2.Value) (jinja2.Value, error) {
	f, tool := jinja2.Dict(), jinja2.Dict()
	jinja2.Put(f, "name", member(t, "name"))
	jinja2.Put(f, "description", member(t, "description"))
	jinja2.Put(f, "parameters", member(t, "input_schema"))
	jinja2.Put(f, "strict", member(t, "strict"))
	jinja2.Put(f, "defer_loading", member(t, "defer_loading"))
	jinja2.Put(tool, "function", f)
	out, _, err := dumpTool(tool)
	return out, err
}

// anthropicChoice is the choice of tools in the chat API's words.
func anthropicChoice(v jinja2.Value) (jinja2.Value, error) {
	none := jinja2.None()
	switch {
	case v.IsNone():
		return none, nil
	case !v.IsDict():
		return none, rejected("tool_choice is not an object")
	}
	switch text(v, "type") {
	case "auto", "none":
		return member(v, "type"), nil
	case "any":
		return jinja2.String("required"), nil
	case "tool":
		if text(v, "name") == "" {
			return none, rejected("tool_choice names no tool")
		}
		f, choice := jinja2.Dict(), jinja2.Dict()
		jinja2.Put(f, "name", member(v, "name"))
		jinja2.Put(choice, "type", jinja2.String("function"))
		jinja2.Put(choice, "function", f)
		return choice, nil
	}
	return none, rejected("tool_choice is none of those known")
}
