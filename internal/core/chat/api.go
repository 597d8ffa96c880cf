package chat

import (
	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
)

// API is the form of a request that an engine answers as a chat.
type API uint8

// The forms. Engines turn Messages and Responses into chat requests before they
// render them.
const (
	Completions API = iota // /v1/chat/completions
	Messages               // /v1/messages, Anthropic's
	Responses              // /v1/responses
	Embeddings             // /v1/embeddings, with messages
)

// converter turns requests of other forms into chat requests as one engine does.
type converter struct {
	engine Engine
	// The two things that vLLM reads off its template: whether it takes system
	// messages only in front, and which effort stands for no thinking.
	systemFirst func() (bool, error)
	noThinking  func() (string, error)
	warnings    []Warning
}

// read reads a body of the given form.
func (c *converter) read(api API, body []byte) (*request, error) {
	parse := jinja2.ParseJSON
	if c.engine == SGLang { // 0.5.23, http_server.py: ORJSONRequest
		parse = jinja2.ParseOrjson
	}
	v, err := parse(body)
	if err != nil {
		return nil, classify(err)
	}
	if !v.IsDict() {
		return nil, rejected("the body is not a JSON object")
	}
	if err := checkFinite(fields[api], v); err != nil {
		return nil, err
	}
	switch api {
	case Completions:
		return readRequest(v)
	case Messages:
		return c.messages(v)
	case Responses:
		return c.responses(v)
	case Embeddings:
		return c.embeddings(v)
	}
	return nil, unrenderable("the form of the request is not a chat")
}

// ToCompletions turns a body of another form into that of the chat request that
// the engine makes of it, for endpoints that take only those. It holds what bears
// on the prompt, and nothing else. The warning is Unverified where the engine's
// way is not known for sure; the error is an *Unrenderable where it depends on the
// model's template too, and a *Rejected for what the engine refuses.
func ToCompletions(engine Engine, api API, body []byte) ([]byte, []Warning, error) {
	depends := func() error { return unrenderable("the engine's conversion depends on the model's template") }
	c := converter{
		engine:      engine,
		systemFirst: func() (bool, error) { return false, depends() },
		noThinking:  func() (string, error) { return "", depends() },
	}
	req, err := c.read(api, body)
	if err != nil {
		return nil, nil, err
	}
	if req.tools.IsList() && req.tools.AsList().Len() == 0 {
		return nil, nil, unrenderable("an empty list of tools, which a chat request cannot have")
	}
	text, err := jinja2.DumpJSON(req.completions(), false)
	if err != nil {
		return nil, nil, classify(err)
	}
	return []byte(text), c.warnings, nil
}

// completions is the request in the form of /v1/chat/completions.
func (r *request) completions() jinja2.Value {
	v := jinja2.Dict()
	jinja2.Put(v, "messages", jinja2.List(r.messages))
	for _, m := range []struct {
		key   string
		value jinja2.Value
	}{{"tools", r.tools}, {"documents", member(r.options, "documents")}, {"reasoning_effort", member(r.options, "reasoning_effort")}} {
		if !m.value.IsNone() {
			jinja2.Put(v, m.key, m.value)
		}
	}
	if isText(r.choice, "none") && !r.tools.IsNone() { // the only choice that shows in a prompt
		jinja2.Put(v, "tool_choice", r.choice)
	}
	if len(r.kwargs.AsDict().Keys) > 0 {
		jinja2.Put(v, "chat_template_kwargs", r.kwargs)
	}
	jinja2.Put(v, "add_generation_prompt", jinja2.Bool(r.adds))
	jinja2.Put(v, "continue_final_message", jinja2.Bool(r.goesOn))
	if r.special {
		jinja2.Put(v, "add_special_tokens", jinja2.Bool(true))
	}
	return v
}

// message makes a message of a role and its content.
func message(role string, content jinja2.Value) jinja2.Value {
	m := jinja2.Dict()
	jinja2.Put(m, "role", jinja2.String(role))
	jinja2.Put(m, "content", content)
	return m
}

// functionCall makes a call of a function with its arguments in JSON.
func functionCall(id, name, arguments jinja2.Value) jinja2.Value {
	function := jinja2.Dict()
	jinja2.Put(function, "name", name)
	jinja2.Put(function, "arguments", arguments)
	call := jinja2.Dict()
	jinja2.Put(call, "id", id)
	jinja2.Put(call, "type", jinja2.String("function"))
	jinja2.Put(call, "function", function)
	return call
}

// optionalText reads a member that is text or null.
func optionalText(v jinja2.Value, key string) (string, bool, error) {
	m := member(v, key)
	switch {
	case m.IsNone():
		return "", false, nil
	case !jinja2.IsText(m):
		return "", false, rejected(key + " is not text")
	}
	return m.AsString(), true, nil
}
