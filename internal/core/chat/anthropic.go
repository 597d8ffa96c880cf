package chat

import (
	"strings"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
)

// messages converts a request to /v1/messages as vLLM does
// (entrypoints/anthropic/serving.py, to_chat_completion_request, 0.32.0), or as
// SGLang does.
func (c *converter) messages(v jinja2.Value) (*request, error) {
	list := member(v, "messages")
	if !list.IsList() {
		return nil, rejected("messages is not a list")
	}
	if c.engine == SGLang {
		return sglangAnthropic(v, list.AsList().Items)
	}
	messages, err := c.anthropicMessages(v, list.AsList().Items)
	if err != nil {
		return nil, err
	}
	if len(messages) == 0 {
		return nil, rejected("messages is empty")
	}
	r := &request{messages: messages, options: jinja2.Dict(), adds: true}
	if r.choice, err = anthropicChoice(member(v, "tool_choice")); err != nil {
		return nil, err
	}
	if r.tools, err = anthropicTools(v, list.AsList().Items); err != nil {
		return nil, err
	}
	if r.choice.IsNone() && !r.tools.IsNone() {
		r.choice = jinja2.String("auto")
	}
	effort, err := c.anthropicEffort(v)
	if err != nil {
		return nil, err
	}
	settings := jinja2.Dict()
	jinja2.Put(settings, "reasoning_effort", effort)
	jinja2.Put(settings, "chat_template_kwargs", member(v, "chat_template_kwargs"))
	return r, r.readKwargs(settings)
}

// anthropicMessages are the system text and the messages of a conversation.
func (c *converter) anthropicMessages(v jinja2.Value, list []jinja2.Value) ([]jinja2.Value, error) {
	system, err := systemTexts(member(v, "system"), false)
	if err != nil {
		return nil, err
	}
	merge, err := c.mergesSystem(list)
	if err != nil {
		return nil, err
	}
	var out []jinja2.Value
	for _, m := range list {
		if !m.IsDict() {
			return nil, rejected("a message is not an object")
		}
		switch role := text(m, "role"); role {
		case "system":
			texts, err := systemTexts(member(m, "content"), true)
			if err != nil {
				return nil, err
			}
			inline := strings.Join(texts, "")
			switch {
			case inline == "":
			case merge:
				system = append(system, inline)
			default:
				out = append(out, message("system", jinja2.String(inline)))
			}
		case "user", "assistant":
			t := turn{role: role}
			if err := t.read(member(m, "content")); err != nil {
				return nil, err
			}
			if t.idless {
				warn(&c.warnings, Unverified)
			}
			out = append(out, t.messages()...)
		default:
			return nil, rejected("a message has none of the roles known")
		}
	}
	if len(system) > 0 {
		out = append([]jinja2.Value{message("system", jinja2.String(strings.Join(system, "")))}, out...)
	}
	return out, nil
}

// mergesSystem asks for the template's order only if there is something to order.
func (c *converter) mergesSystem(list []jinja2.Value) (bool, error) {
	for _, m := range list {
		if m.IsDict() && text(m, "role") == "system" {
			return c.systemFirst()
		}
	}
	return false, nil
}

// systemTexts are the texts of a system prompt. Claude Code's billing header is a
// block of its own, which is dropped; as plain text only that of an inline
// message is, and the other loses its first line when the chat is prepared.
func systemTexts(content jinja2.Value, inline bool) ([]string, error) {
	switch {
	case content.IsNone() && !inline:
		return nil, nil
	case jinja2.IsText(content):
		s := content.AsString()
		if s == "" || inline && strings.HasPrefix(s, billing) {
			return nil, nil
		}
		return []string{s}, nil
	}
	var texts []string
	err := blocks(content, func(kind string, block jinja2.Value) error {
		if kind == "tool_addition" || kind == "tool_removal" {
			if !inline {
				return rejected("a change of tools in the system prompt")
			}
			return nil
		}
		s, _, err := optionalText(block, "text")
		if kind == "text" && s != "" && !strings.HasPrefix(s, billing) {
			texts = append(texts, s)
		}
		return err
	})
	return texts, err
}

// blockTypes are the types of content blocks that vLLM knows.
var blockTypes = map[string]bool{
	"text": true, "image": true, "tool_use": true, "tool_result": true, "tool_reference": true,
	"thinking": true, "redacted_thinking": true, "tool_addition": true, "tool_removal": true,
}

// blocks calls f with each block of a content and its type.
func blocks(content jinja2.Value, f func(kind string, block jinja2.Value) error) error {
	if !content.IsList() {
		return rejected("a content is neither text nor a list of blocks")
	}
	for _, block := range content.AsList().Items {
		if !block.IsDict() {
			return rejected("a content block is not an object")
		}
		kind := text(block, "type")
		if !blockTypes[kind] {
			return rejected("a content block has none of the types known")
		}
		if err := f(kind, block); err != nil {
			return err
		}
	}
	return nil
}

// anthropicEffort is the effort that a request asks for, None for none. A request
// without thinking overrides the effort that its output_config names.
func (c *converter) anthropicEffort(v jinja2.Value) (jinja2.Value, error) {
	none := jinja2.None()
	effort := none
	if config := member(v, "output_config"); !config.IsNone() {
		if !config.IsDict() {
			return none, rejected("output_config is not an object")
		}
		if effort = member(config, "effort"); !effort.IsNone() {
			switch text(config, "effort") {
			case "low", "medium", "high", "xhigh", "max":
			default:
				return none, rejected("the effort is none of those known")
			}
		}
	}
	thinking := member(v, "thinking")
	if thinking.IsNone() {
		return effort, nil
	}
	switch text(thinking, "type") {
	case "enabled", "adaptive":
		return effort, nil
	case "disabled":
		s, err := c.noThinking()
		return jinja2.String(s), err
	}
	return none, rejected("thinking is none of the kinds known")
}
