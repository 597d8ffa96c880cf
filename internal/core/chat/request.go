package chat

import "github.com/eppctl/eppctl/internal/core/chat/jinja2"

// request is what of a chat request's body reaches the prompt.
type request struct {
	messages []jinja2.Value
	tools    jinja2.Value // a list, or None
	kwargs   jinja2.Value // chat_template_kwargs, a dict
	options  jinja2.Value // add_generation_prompt and others, which stand above kwargs
	choice   jinja2.Value // tool_choice
	adds     bool         // add_generation_prompt
	goesOn   bool         // continue_final_message
	unparsed bool         // no parser of tool calls is asked for, whatever the choice
	special  bool         // the text is encoded with special tokens around it
	plain    bool         // the server's default kwargs are not for it
}

// readRequest reads a body and refuses what vLLM refuses before it looks at a
// message (entrypoints/openai/chat_completion/protocol.py, 0.32.0).
func readRequest(v jinja2.Value) (*request, error) {
	r := &request{options: jinja2.Dict(), choice: member(v, "tool_choice")}
	list := member(v, "messages")
	switch {
	case !list.IsList():
		return nil, rejected("messages is not a list")
	case list.AsList().Len() == 0:
		return nil, rejected("messages is empty")
	}
	r.messages = list.AsList().Items
	if !member(v, "chat_template").IsNone() {
		return nil, unrenderable("the request brings its own template")
	}
	var err error
	if r.adds, err = flag(v, "add_generation_prompt", true); err != nil {
		return nil, err
	}
	if r.goesOn, err = flag(v, "continue_final_message", false); err != nil {
		return nil, err
	}
	if r.adds && r.goesOn {
		return nil, rejected("continue_final_message and add_generation_prompt are both true")
	}
	if err := r.readKwargs(v); err != nil {
		return nil, err
	}
	return r, r.readTools(v)
}

// member is a member that may be absent, which is the same as null; what is no dict
// has none.
func member(v jinja2.Value, key string) jinja2.Value {
	if v.IsDict() {
		if m, ok := jinja2.Get(v, key); ok {
			return m
		}
	}
	return jinja2.None()
}

// flag is a boolean member. Pydantic also takes other values for one; who sends
// them is asked to be tokenized elsewhere.
func flag(v jinja2.Value, key string, fallback bool) (bool, error) {
	m := member(v, key)
	switch {
	case m.IsBool():
		return m.AsBool(), nil
	case m.IsNone():
		if _, given := jinja2.Get(v, key); given {
			return false, rejected(key + " is null")
		}
		return fallback, nil
	}
	return false, unrenderable(key + " is not a boolean")
}

// transformersArguments are the names that chat_template_kwargs cannot give to a
// template, because they steer the rendering itself.
var transformersArguments = []string{"chat_template", "tokenize", "conversation", "padding", "truncation", "max_length", "return_tensors",
	"return_dict", "return_assistant_tokens_mask", "sanitize_control_tokens", "tokenizer_kwargs", "messages"}

var efforts = map[string]bool{"none": true, "minimal": true, "low": true, "medium": true, "high": true, "xhigh": true, "max": true}

// readKwargs sorts what a request gives to its template: chat_template_kwargs,
// and above it the options of the request itself.
func (r *request) readKwargs(v jinja2.Value) error {
	r.kwargs = member(v, "chat_template_kwargs")
	switch {
	case r.kwargs.IsNone():
		r.kwargs = jinja2.Dict()
	case !r.kwargs.IsDict():
		return rejected("chat_template_kwargs is not an object")
	}
	for _, name := range transformersArguments {
		if _, ok := jinja2.Get(r.kwargs, name); ok {
			return unrenderable("chat_template_kwargs has " + name)
		}
	}
	jinja2.Put(r.options, "add_generation_prompt", jinja2.Bool(r.adds))
	jinja2.Put(r.options, "continue_final_message", jinja2.Bool(r.goesOn))
	if documents := member(v, "documents"); !documents.IsNone() {
		if !documents.IsList() {
			return rejected("documents is not a list")
		}
		for _, d := range documents.AsList().Items {
			if !d.IsDict() {
				return rejected("a document is not an object")
			}
			for _, key := range d.AsDict().Keys {
				if !jinja2.IsText(member(d, key)) {
					return rejected("a member of a document is not text")
				}
			}
		}
		jinja2.Put(r.options, "documents", documents)
	}
	effort := member(v, "reasoning_effort")
	switch {
	case effort.IsNone():
		return nil
	case !jinja2.IsText(effort) || !efforts[effort.AsString()]:
		return rejected("reasoning_effort is none of those known")
	}
	jinja2.Put(r.options, "reasoning_effort", effort)
	// vLLM switches thinking on with an effort, unless the request says.
	if _, said := jinja2.Get(r.kwargs, "enable_thinking"); !said {
		jinja2.Put(r.options, "enable_thinking", jinja2.Bool(effort.AsString() != "none"))
	}
	return nil
}
