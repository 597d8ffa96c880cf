package chat

import (
	"strings"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
	"github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"
)

// SGLang's conversions are followed where they pass text on: its preparation of
// anything else is not verified, and depends on the model's detectors of
// reasoning and tools besides (0.5.23, entrypoints/anthropic/serving.py,
// entrypoints/openai/serving_responses.py).

// sglangText is the text of a content that is text, or one block of the given
// types that is; "", false for all else.
func sglangText(content jinja2.Value, types ...string) (string, bool) {
	if jinja2.IsText(content) {
		return content.AsString(), true
	}
	if !content.IsList() || content.AsList().Len() != 1 {
		return "", false
	}
	part := content.AsList().Items[0]
	for _, kind := range types {
		if s := member(part, "text"); text(part, "type") == kind && jinja2.IsText(s) {
			return s.AsString(), true
		}
	}
	return "", false
}

// given reports whether one of the members is there and not null.
func given(v jinja2.Value, keys ...string) bool {
	for _, key := range keys {
		if !member(v, key).IsNone() {
			return true
		}
	}
	return false
}

func plainRequest(messages []jinja2.Value) (*request, error) {
	if len(messages) == 0 {
		return nil, rejected("messages is empty")
	}
	r := &request{messages: messages, tools: jinja2.None(), choice: jinja2.None(), options: jinja2.Dict(), adds: true}
	return r, r.readKwargs(jinja2.Dict())
}

func sglangAnthropic(v jinja2.Value, list []jinja2.Value) (*request, error) {
	if given(v, "tools", "thinking", "output_config", "chat_template_kwargs") {
		return nil, unrenderable("SGLang's way with tools and thinking of /v1/messages")
	}
	var out []jinja2.Value
	system := member(v, "system")
	switch {
	case system.IsNone():
	case jinja2.IsText(system):
		if strings.TrimFunc(system.AsString(), syntax.IsSpace) != "" {
			out = append(out, message("system", system))
		}
	case system.IsList():
		var texts []string
		for _, block := range system.AsList().Items {
			if s := text(block, "text"); text(block, "type") == "text" && s != "" {
				texts = append(texts, s)
			}
		}
		if len(texts) > 0 {
			out = append(out, message("system", jinja2.String(strings.Join(texts, "\n"))))
		}
	default:
		return nil, rejected("the system prompt is neither text nor a list of blocks")
	}
	for _, m := range list {
		s, ok := "", false
		if role := text(m, "role"); role == "user" || role == "assistant" {
			s, ok = sglangText(member(m, "content"), "text")
		}
		if !ok {
			return nil, unrenderable("SGLang's way with a message of /v1/messages that is not one text")
		}
		out = append(out, message(text(m, "role"), jinja2.String(s)))
	}
	return plainRequest(out)
}

func sglangResponses(v jinja2.Value, items []jinja2.Value) (*request, error) {
	if given(v, "tools", "reasoning", "chat_template_kwargs") {
		return nil, unrenderable("SGLang's way with tools and reasoning of /v1/responses")
	}
	var out []jinja2.Value
	if instructions := text(v, "instructions"); instructions != "" {
		out = append(out, message("system", jinja2.String(instructions)))
	}
	last := ""
	for _, item := range items {
		role := text(item, "role")
		kind := member(item, "type")
		s, ok := sglangText(member(item, "content"))
		// A second system message may be merged into the first, and neighbouring
		// answers are.
		if !ok || !kind.IsNone() && !isText(kind, "message") || role != "user" && (role != "assistant" || last == role) {
			return nil, unrenderable("SGLang's way with an item of /v1/responses that is not one text")
		}
		out, last = append(out, message(role, jinja2.String(s))), role
	}
	return plainRequest(out)
}
