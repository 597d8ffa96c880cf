package chat

import (
	"strings"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
)

// preparation is a conversation on its way to the template, as vLLM prepares it
// (renderers/chat_utils.py, 0.32.0).
type preparation struct {
	engine   Engine
	format   Format
	warnings []Warning

	// media is where the first part that is no text stands: a part of a list
	// (PartsFormat) or the whole content of a message (StringFormat, where the
	// engine puts its placeholders in front).
	media *place
}

// place is a part of the content of a prepared message.
type place struct {
	message jinja2.Value
	part    int
}

func (p *preparation) warn(w Warning) { warn(&p.warnings, w) }

// prepare makes the messages a template is given.
func (p *preparation) prepare(messages []jinja2.Value) ([]jinja2.Value, error) {
	out := make([]jinja2.Value, 0, len(messages))
	for _, m := range messages {
		prepared, err := p.message(m)
		if err != nil {
			return nil, err
		}
		out = append(out, prepared)
	}
	return out, nil
}

// message prepares one message. Only the fields that vLLM knows are passed on,
// in its order.
func (p *preparation) message(m jinja2.Value) (jinja2.Value, error) {
	none := jinja2.None()
	if !m.IsDict() {
		return none, rejected("a message is not an object")
	}
	role := member(m, "role")
	if !jinja2.IsText(role) {
		return none, rejected("a message has no role")
	}
	if _, given := jinja2.Get(m, "content"); given && member(m, "content").IsNone() && role.AsString() != "assistant" {
		return none, rejected("the content of a message is null")
	}
	out := jinja2.Dict()
	jinja2.Put(out, "role", role)
	content, err := p.content(m, role.AsString(), out)
	if err != nil {
		return none, err
	}
	jinja2.Put(out, "content", content)
	switch role.AsString() {
	case "assistant":
		if err := p.assistant(m, out); err != nil {
			return none, err
		}
	case "tool":
		if id, ok := jinja2.Get(m, "tool_call_id"); ok {
			if !id.IsNone() && !jinja2.IsText(id) {
				return none, rejected("the tool_call_id of a message is not text")
			}
			jinja2.Put(out, "tool_call_id", id)
		}
	}
	if calls := member(m, "tool_calls"); calls.IsBool() || calls.IsInt() || calls.IsFloat() {
		return none, rejected("tool_calls is not a list")
	}
	for _, key := range []string{"name", "task"} {
		if v := member(m, key); jinja2.IsText(v) {
			jinja2.Put(out, key, v)
		}
	}
	if name, given := jinja2.Get(m, "name"); given && !jinja2.IsText(name) && role.AsString() != "tool" {
		return none, rejected("the name in a message is not text")
	}
	if tools := member(m, "tools"); role.AsString() == "developer" && !tools.IsNone() {
		jinja2.Put(out, "tools", tools)
	}
	return out, nil
}

// assistant adds what only an assistant's message has.
func (p *preparation) assistant(m, out jinja2.Value) error {
	calls, err := p.toolCalls(member(m, "tool_calls"))
	if err != nil {
		return err
	}
	if !calls.IsNone() {
		jinja2.Put(out, "tool_calls", calls)
	}
	reasoning := member(m, "reasoning")
	if reasoning.IsNone() {
		reasoning = member(m, "reasoning_content")
	}
	if reasoning.IsNone() {
		return nil
	}
	jinja2.Put(out, "reasoning", reasoning)
	jinja2.Put(out, "reasoning_content", reasoning)
	return nil
}

// toolCalls are calls with their arguments as an object: None when there are
// none.
func (p *preparation) toolCalls(v jinja2.Value) (jinja2.Value, error) {
	none := jinja2.None()
	switch {
	case v.IsNone():
		return none, nil
	case !v.IsList():
		return none, rejected("tool_calls is not a list")
	case v.AsList().Len() == 0:
		return none, nil
	}
	out := make([]jinja2.Value, 0, v.AsList().Len())
	for _, c := range v.AsList().Items {
		if !c.IsDict() {
			return none, rejected("a tool call is not an object")
		}
		f, id := member(c, "function"), member(c, "id")
		if !isText(member(c, "type"), "function") || !f.IsDict() || !jinja2.IsText(id) {
			return none, rejected("a tool call has not all of its fields")
		}
		arguments, name := member(f, "arguments"), member(f, "name")
		if !jinja2.IsText(arguments) || !jinja2.IsText(name) {
			return none, rejected("the name or the arguments of a tool call are not text")
		}
		parsed, err := p.arguments(arguments.AsString())
		if err != nil {
			return none, err
		}
		function := jinja2.Dict()
		jinja2.Put(function, "arguments", parsed)
		jinja2.Put(function, "name", name)
		call := jinja2.Dict()
		jinja2.Put(call, "id", id)
		jinja2.Put(call, "function", function)
		jinja2.Put(call, "type", jinja2.String("function"))
		out = append(out, call)
	}
	return jinja2.List(out), nil
}

// arguments parses the arguments of a call. What is no object becomes an empty
// one, and SGLang refuses it (0.5.23, serving_chat.py: parse_tool_call_arguments).
func (p *preparation) arguments(raw string) (jinja2.Value, error) {
	if p.engine == SGLang {
		v, err := jinja2.ParseOrjson([]byte(raw))
		if err == nil && !v.IsDict() {
			err = rejected("the arguments of a call are no object")
		}
		return v, classify(err)
	}
	if raw == "" {
		return jinja2.Dict(), nil
	}
	v, err := jinja2.ParseJSON([]byte(raw))
	if jinja2.IsUnsupported(err) {
		return v, classify(err)
	}
	if err != nil || !v.IsDict() {
		p.warn(ArgumentsReplaced)
		return jinja2.Dict(), nil
	}
	return v, nil
}

// developers turns the role developer into system when the template's text does
// not name it, and then puts all system messages in front as one.
func (p *preparation) developers(messages []jinja2.Value, source string) []jinja2.Value {
	if strings.Contains(source, `"developer"`) || strings.Contains(source, `'developer'`) {
		return messages
	}
	found := false
	for _, m := range messages {
		if isText(member(m, "role"), "developer") {
			found = true
			jinja2.Put(m, "role", jinja2.String("system"))
			jinja2.Delete(m, "tools")
		}
	}
	if !found {
		return messages
	}
	p.warn(RolesMerged)
	var system []string
	var others []jinja2.Value
	misplaced := false
	for i, m := range messages {
		if !isText(member(m, "role"), "system") {
			others = append(others, m)
			continue
		}
		misplaced = misplaced || i > 0
		if s := joined(member(m, "content")); s != "" {
			system = append(system, s)
		}
	}
	if !misplaced {
		return messages
	}
	merged := jinja2.Dict()
	jinja2.Put(merged, "role", jinja2.String("system"))
	jinja2.Put(merged, "content", jinja2.String(strings.Join(system, "\n\n")))
	return append([]jinja2.Value{merged}, others...)
}

// joined is the text of a content: its parts, line by line.
func joined(content jinja2.Value) string {
	if jinja2.IsText(content) {
		return content.AsString()
	}
	var parts []string
	if content.IsList() {
		for _, part := range content.AsList().Items {
			if _, ok := jinja2.Get(part, "text"); ok {
				parts = append(parts, text(part, "text"))
			}
		}
	}
	return strings.Join(parts, "\n")
}
