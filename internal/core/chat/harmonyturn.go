package chat

import (
	"strings"
	"unicode"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
)

// harmonyTurn is a message of the format.
type harmonyTurn struct {
	role     string
	channel  string   // "" = none
	function string   // of an assistant: that it calls; of a tool: whose answer it is
	calls    bool     // it calls a function
	contents []string // each encoded apart
}

// harmonyTurns are the messages of the format that one message of a chat becomes. called
// has the names of functions by the ids of their calls.
func harmonyTurns(m jinja2.Value, called map[string]string) ([]harmonyTurn, error) {
	texts, given, err := harmonyContent(m)
	if err != nil {
		return nil, err
	}
	role, whole := text(m, "role"), strings.Join(texts, "")
	switch role {
	case "system", "developer":
		if !given {
			return nil, nil
		}
		return []harmonyTurn{{role: "developer", contents: []string{harmonyInstructions(whole)}}}, nil
	case "user":
		return []harmonyTurn{{role: role, contents: texts}}, nil
	case "tool":
		return []harmonyTurn{{role: role, function: called[text(m, "tool_call_id")], contents: []string{whole}}}, nil
	case "assistant":
		return harmonyAnswer(m, texts)
	}
	return nil, unrenderable("a role that the format does not have")
}

// harmonyAnswer is what an assistant thought, said and called. Beside calls it is the
// commentary that comes first, and an answer without a first text is none.
func harmonyAnswer(m jinja2.Value, texts []string) ([]harmonyTurn, error) {
	var turns []harmonyTurn
	say := func(channel string, contents ...string) {
		turns = append(turns, harmonyTurn{role: "assistant", channel: channel, contents: contents})
	}
	thought, err := harmonyThought(m)
	if err != nil {
		return nil, err
	}
	calls := member(m, "tool_calls")
	calling := calls.IsList() && calls.AsList().Len() > 0
	if whole := strings.Join(texts, ""); calling && whole != "" {
		say("commentary", whole)
	}
	if thought != "" {
		say("analysis", thought)
	}
	if !calling {
		if len(texts) > 0 && texts[0] != "" {
			say("final", texts...)
		}
		return turns, nil
	}
	for _, call := range calls.AsList().Items {
		f := member(call, "function")
		turns = append(turns, harmonyTurn{
			role: "assistant", channel: "commentary", calls: true, function: text(f, "name"), contents: []string{text(f, "arguments")},
		})
	}
	return turns, nil
}

// harmonyThought is the reasoning of a message, by either of its names.
func harmonyThought(m jinja2.Value) (string, error) {
	v := member(m, "reasoning")
	if v.IsNone() {
		v = member(m, "reasoning_content")
	}
	if !v.IsNone() && !jinja2.IsText(v) {
		return "", unrenderable("the reasoning of a message is not text")
	}
	if v.IsNone() {
		return "", nil
	}
	return v.AsString(), nil
}

// write writes the turn. Where the recipient of a function's answer stands depends on the
// library that the engine renders with (vLLM 0.31.0 took another one).
func (t *harmonyTurn) write(b *harmonyText, release Release) error {
	if t.function != "" && !plainName(t.function) {
		return unrenderable("a function's name with white space or a special token in it")
	}
	b.token("<|start|>")
	channel := t.channel
	switch {
	case t.role == "tool" && release == (Release{}):
		return unrenderable("a function's answer, whose header is another one before and since vLLM 0.31.0, and the release of the engines is not known, or not one")
	case t.role == "tool" && release.Before(0, 31):
		b.text("functions." + t.function + " to=assistant")
		channel = "commentary"
	case t.role == "tool":
		b.text("functions." + t.function)
		channel = "commentary to=assistant"
	case t.calls:
		b.text(t.role + " to=functions." + t.function)
		channel += " json"
	default:
		b.text(t.role)
	}
	if channel != "" {
		b.token("<|channel|>")
		b.text(channel)
	}
	b.token("<|message|>")
	for _, s := range t.contents {
		b.text(s)
	}
	if t.calls {
		b.token("<|call|>")
	} else {
		b.token("<|end|>")
	}
	return nil
}

// plainName reports whether a function's name is encoded in a header as it is anywhere.
func plainName(s string) bool {
	return len(lookalikes(s)) == 0 && !strings.ContainsFunc(s, unicode.IsSpace)
}
