package chat

import "github.com/eppctl/eppctl/internal/core/chat/jinja2"

// responses converts a request to /v1/responses as vLLM does
// (renderers/online_renderer.py, render_responses;
// entrypoints/openai/responses/{protocol,utils}.py, 0.32.0), or as SGLang does.
// vLLM encodes the text with special tokens, which it does not for other chats:
// where the template prints a BOS there are two.
func (c *converter) responses(v jinja2.Value) (*request, error) {
	if given(v, "previous_response_id") {
		return nil, unrenderable("the history of previous_response_id is in the memory of one engine")
	}
	if given(v, "prompt") {
		return nil, rejected("a prompt template")
	}
	instructions, _, err := optionalText(v, "instructions")
	if err != nil {
		return nil, err
	}
	items, err := inputItems(member(v, "input"))
	if err != nil {
		return nil, err
	}
	if c.engine == SGLang {
		return sglangResponses(v, items)
	}
	s := session{}
	if instructions != "" {
		s.messages = append(s.messages, message("system", jinja2.String(instructions)))
		s.own = 1
	}
	for _, item := range items {
		if err := s.item(item); err != nil {
			return nil, err
		}
	}
	if len(s.messages) == 0 {
		return nil, rejected("input is empty")
	}
	r := &request{messages: s.messages, options: jinja2.Dict(), choice: member(v, "tool_choice"), unparsed: true, special: true}
	r.goesOn = unfinished(items)
	r.adds = !r.goesOn
	if tools, given := jinja2.Get(v, "tools"); given && tools.IsNone() {
		return nil, rejected("tools is null")
	}
	if r.tools, err = responseTools(member(v, "tools")); err != nil {
		return nil, err
	}
	return r, r.readKwargs(responseSettings(v))
}

// responseSettings are those of a chat request.
func responseSettings(v jinja2.Value) jinja2.Value {
	settings := jinja2.Dict()
	jinja2.Put(settings, "chat_template_kwargs", member(v, "chat_template_kwargs"))
	if reasoning := member(v, "reasoning"); reasoning.IsDict() {
		jinja2.Put(settings, "reasoning_effort", member(reasoning, "effort"))
	}
	return settings
}

// inputItems are the items of an input; text is one message of the user.
func inputItems(input jinja2.Value) ([]jinja2.Value, error) {
	switch {
	case jinja2.IsText(input):
		return []jinja2.Value{message("user", input)}, nil
	case input.IsList():
		return input.AsList().Items, nil
	}
	return nil, rejected("input is neither text nor a list")
}

// unfinished reports that the last item is an answer to be continued.
func unfinished(items []jinja2.Value) bool {
	if len(items) == 0 {
		return false
	}
	last := items[len(items)-1]
	kind := member(last, "type")
	if !kind.IsNone() && !isText(kind, "message") && !isText(kind, "reasoning") {
		return false
	}
	status := text(last, "status")
	return status == "in_progress" || status == "incomplete"
}

// session is the conversation that items of a response build up. Several items
// may be one message of the assistant: what it thought, said and called.
type session struct {
	messages []jinja2.Value
	own      int // messages in front that no item is joined with
}

// answer is the last message, when it is one of the assistant's.
func (s *session) answer() (jinja2.Value, bool) {
	if len(s.messages) == s.own {
		return jinja2.None(), false
	}
	last := s.messages[len(s.messages)-1]
	return last, text(last, "role") == "assistant"
}

// join sets a field of the assistant's message that lacks it, or begins a new one.
func (s *session) join(key string, v jinja2.Value) {
	if last, ok := s.answer(); ok && member(last, key).IsNone() {
		jinja2.Put(last, key, v)
		return
	}
	m := jinja2.Dict()
	jinja2.Put(m, "role", jinja2.String("assistant"))
	jinja2.Put(m, key, v)
	s.messages = append(s.messages, m)
}

func (s *session) call(call jinja2.Value) {
	if last, ok := s.answer(); ok {
		if calls := member(last, "tool_calls"); calls.IsList() {
			jinja2.Put(last, "tool_calls", jinja2.List(append(calls.AsList().Items, call)))
			return
		}
	}
	s.join("tool_calls", jinja2.List([]jinja2.Value{call}))
}

func (s *session) item(item jinja2.Value) error {
	if !item.IsDict() {
		return rejected("an item of input is not an object")
	}
	switch kind := text(item, "type"); kind {
	case "function_call", "custom_tool_call":
		return s.called(item, kind == "custom_tool_call")
	case "reasoning":
		return s.thought(item)
	case "function_call_output", "custom_tool_call_output":
		output := member(item, "output")
		if id := member(item, "call_id"); !jinja2.IsText(id) || !jinja2.IsText(output) && !output.IsList() {
			return rejected("an output of a call has not all of its fields")
		}
		s.messages = append(s.messages, toolMessage(text(item, "call_id"), output))
		return nil
	case "", "message":
		return s.message(item)
	}
	return rejected("an item of input is of a type that the engine does not take")
}

// called reads a call of a function, or of a tool that takes free text.
func (s *session) called(item jinja2.Value, custom bool) error {
	field := "arguments"
	if custom {
		field = "input"
	}
	name, id, arguments := member(item, "name"), member(item, "call_id"), member(item, field)
	if !jinja2.IsText(name) || !jinja2.IsText(id) || !jinja2.IsText(arguments) {
		return rejected("a call has not all of its fields")
	}
	if custom {
		input := jinja2.Dict()
		jinja2.Put(input, "input", arguments)
		shim, err := jinja2.DumpJSON(input, false)
		if err != nil {
			return classify(err)
		}
		arguments = jinja2.String(shim)
	} else if space := text(item, "namespace"); space != "" {
		name = jinja2.String(space + "__" + name.AsString())
	}
	s.call(functionCall(id, name, arguments))
	return nil
}

// thought reads reasoning: its first text, or else that of its summary.
func (s *session) thought(item jinja2.Value) error {
	if text(item, "encrypted_content") != "" {
		return rejected("encrypted reasoning")
	}
	if !member(item, "summary").IsList() {
		return rejected("reasoning has no summary")
	}
	reasoning := ""
	for _, key := range []string{"content", "summary"} {
		if list := member(item, key); list.IsList() && list.AsList().Len() > 0 {
			reasoning = text(list.AsList().Items[0], "text")
			break
		}
	}
	s.join("reasoning", jinja2.String(reasoning))
	return nil
}

// message reads a message. Of an answer only its first part counts.
func (s *session) message(item jinja2.Value) error {
	role, content := text(item, "role"), member(item, "content")
	if !jinja2.IsText(content) && !content.IsList() {
		return rejected("a message has no content")
	}
	if role != "assistant" {
		switch role {
		case "user", "system", "developer":
			if content.IsList() && !inputParts(content) {
				return rejected("a content part has none of the types known")
			}
			s.messages = append(s.messages, message(role, content))
			return nil
		}
		return rejected("a message has none of the roles known")
	}
	if content.IsList() {
		if content.AsList().Len() == 0 {
			return rejected("an answer is empty")
		}
		if given := inputParts(content); !given && text(item, "type") == "" {
			return rejected("an answer in parts is without its type")
		}
		if content = member(content.AsList().Items[0], "text"); !jinja2.IsText(content) {
			return rejected("an answer does not begin with text")
		}
	}
	s.join("content", content)
	return nil
}

// inputParts reports whether all parts of a content are of those that a client
// says.
func inputParts(content jinja2.Value) bool {
	for _, part := range content.AsList().Items {
		switch text(part, "type") {
		case "input_text", "input_image", "input_file":
		default:
			return false
		}
	}
	return true
}
