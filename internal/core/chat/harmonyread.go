package chat

import "github.com/eppctl/eppctl/internal/core/chat/jinja2"

// harmonyOwn are the members by which a message may be one of the Harmony format itself,
// which vLLM takes too.
var harmonyOwn = []string{"author", "channel", "recipient", "content_type"}

// read makes turns of the messages of a request. A first one of the system or the
// developer is the instructions.
func (h *harmonyChat) read(messages []jinja2.Value) error {
	called := map[string]string{}
	for _, m := range messages {
		if err := checkHarmony(m); err != nil {
			return err
		}
		if calls := member(m, "tool_calls"); calls.IsList() {
			for _, call := range calls.AsList().Items {
				called[text(call, "id")] = text(member(call, "function"), "name")
			}
		}
	}
	if role := text(messages[0], "role"); role == "system" || role == "developer" {
		texts, given, err := harmonyContent(messages[0])
		if err != nil {
			return err
		}
		for _, s := range texts {
			h.instructions += s
		}
		h.instructed, messages = given, messages[1:]
	}
	for _, m := range messages {
		turns, err := harmonyTurns(m, called)
		if err != nil {
			return err
		}
		h.turns = append(h.turns, turns...)
	}
	return nil
}

// checkHarmony refuses a message whose form the engine refuses, or may take for another
// one than it seems.
func checkHarmony(m jinja2.Value) error {
	if !m.IsDict() {
		return rejected("a message is not an object")
	}
	if !jinja2.IsText(member(m, "role")) {
		return unrenderable("a message without a role")
	}
	for _, key := range harmonyOwn {
		if _, given := jinja2.Get(m, key); given {
			return unrenderable("a message that may be one of the Harmony format itself")
		}
	}
	if err := checkHarmonyParts(m); err != nil {
		return err
	}
	return checkHarmonyCalls(m)
}

// checkHarmonyParts refuses content in parts beside a member that keeps the message from
// being one of vLLM's own kind (CustomChatCompletionMessageParam): of the other kinds the
// parts may be read once alone, and are gone before they are rendered.
func checkHarmonyParts(m jinja2.Value) error {
	if !member(m, "content").IsList() {
		return nil
	}
	for _, key := range m.AsDict().Keys {
		v, ok := member(m, key), false
		switch key {
		case "role", "content", "tool_calls":
			ok = true
		case "name":
			ok = jinja2.IsText(v)
		case "tool_call_id", "reasoning", "reasoning_content":
			ok = v.IsNone() || jinja2.IsText(v)
		}
		if !ok {
			return unrenderable("content in parts beside a member that is not one of a chat's message")
		}
	}
	return nil
}

// checkHarmonyCalls refuses calls that are not ones of functions, or not whole.
func checkHarmonyCalls(m jinja2.Value) error {
	content, set := jinja2.Get(m, "content")
	calls, given := jinja2.Get(m, "tool_calls")
	switch {
	case given && calls.IsNone() && set && content.IsNone():
		return rejected("both the content and the tool_calls of a message are null")
	case !given, calls.IsNone() && text(m, "role") == "assistant":
		return nil
	case text(m, "role") != "assistant":
		return unrenderable("tool_calls of a message that is no assistant's")
	case !calls.IsList():
		return unrenderable("tool_calls is not a list")
	}
	for _, call := range calls.AsList().Items {
		if err := checkHarmonyCall(call); err != nil {
			return err
		}
	}
	return nil
}

func checkHarmonyCall(call jinja2.Value) error {
	f := member(call, "function")
	if !isText(member(call, "type"), "function") || !jinja2.IsText(member(call, "id")) || !jinja2.IsText(member(f, "name")) || !jinja2.IsText(member(f, "arguments")) {
		return unrenderable("a tool call that is not one of a function, or not whole")
	}
	return nil
}

// harmonyContent is the content of a message as texts; given = it has one, be it empty.
// vLLM leaves out what is no text, or fails: such parts are left to it.
func harmonyContent(m jinja2.Value) (texts []string, given bool, err error) {
	content, set := jinja2.Get(m, "content")
	switch {
	case !set:
		return nil, false, nil
	case content.IsNone() && text(m, "role") == "assistant":
		return nil, false, nil
	case content.IsNone():
		return nil, false, rejected("the content of a message is null")
	case jinja2.IsText(content):
		return []string{content.AsString()}, true, nil
	case !content.IsList():
		return nil, false, unrenderable("the content of a message is neither text nor a list")
	}
	for _, part := range content.AsList().Items {
		s := member(part, "text")
		if !isText(member(part, "type"), "text") || !jinja2.IsText(s) {
			return nil, false, unrenderable("a content part that is no text")
		}
		texts = append(texts, s.AsString())
	}
	return texts, len(texts) > 0, nil
}
