package chat

import "github.com/eppctl/eppctl/internal/core/chat/jinja2"

// responseTools are the tools of a request to /v1/responses that its template is
// given: functions, those of namespaces under joined names, and custom tools as
// functions of one text. All others are left out (vLLM 0.32.0,
// tool_parsers/utils.py, get_function_tools).
func responseTools(v jinja2.Value) (jinja2.Value, error) {
	none := jinja2.None()
	switch {
	case v.IsNone():
		return none, nil
	case !v.IsList():
		return none, rejected("tools is not a list")
	case v.AsList().Len() == 0:
		return none, nil
	}
	var out []jinja2.Value
	add := func(t jinja2.Value, prefix string) error {
		tool, err := responseTool(t, prefix)
		out = append(out, tool)
		return err
	}
	for _, t := range v.AsList().Items {
		if !t.IsDict() {
			return none, rejected("a tool is not an object")
		}
		switch text(t, "type") {
		case "":
			return none, rejected("a tool has no type")
		case "function":
			if err := add(t, ""); err != nil {
				return none, err
			}
		case "custom":
			if text(member(t, "format"), "type") == "grammar" {
				return none, rejected("a custom tool with a grammar")
			}
			t = jinja2.Copy(t)
			jinja2.Put(t, "parameters", customParameters())
			for _, key := range []string{"strict", "defer_loading"} {
				jinja2.Delete(t, key)
			}
			if err := add(t, ""); err != nil {
				return none, err
			}
		case "namespace":
			members := member(t, "tools")
			if !members.IsList() || !jinja2.IsText(member(t, "name")) {
				return none, rejected("a namespace has not all of its fields")
			}
			for _, m := range members.AsList().Items {
				if text(m, "type") != "function" {
					continue
				}
				if err := add(m, text(t, "name")+"__"); err != nil {
					return none, err
				}
			}
		}
	}
	return jinja2.List(out), nil
}

// responseTool is a flat tool in the form of the chat API.
func responseTool(t jinja2.Value, prefix string) (jinja2.Value, error) {
	if !jinja2.IsText(member(t, "name")) {
		return jinja2.None(), rejected("a tool has no name")
	}
	f, tool := jinja2.Dict(), jinja2.Dict()
	jinja2.Put(f, "name", jinja2.String(prefix+text(t, "name")))
	for _, key := range []string{"description", "parameters", "strict", "defer_loading"} {
		jinja2.Put(f, key, member(t, key))
	}
	jinja2.Put(tool, "function", f)
	out, _, err := dumpTool(tool)
	return out, err
}

// customParameters are those of the function that a custom tool is shown as.
func customParameters() jinja2.Value {
	str := jinja2.String
	input, properties, p := jinja2.Dict(), jinja2.Dict(), jinja2.Dict()
	jinja2.Put(input, "type", str("string"))
	jinja2.Put(input, "description", str("The freeform text payload for this tool."))
	jinja2.Put(properties, "input", input)
	jinja2.Put(p, "type", str("object"))
	jinja2.Put(p, "properties", properties)
	jinja2.Put(p, "required", jinja2.List([]jinja2.Value{str("input")}))
	jinja2.Put(p, "additionalProperties", jinja2.Bool(false))
	return p
}
