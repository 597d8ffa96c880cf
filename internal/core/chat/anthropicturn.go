package chat

import (
	"strings"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
)

// turn is a message of the user or the assistant on its way to the messages of a
// chat (vLLM 0.32.0, entrypoints/anthropic/serving.py, _convert_block).
type turn struct {
	role     string
	plain    jinja2.Value   // content that is text
	before   []jinja2.Value // messages in front of this one: what tools returned
	parts    []jinja2.Value
	calls    []jinja2.Value
	thoughts []string
	thought  bool
	idless   bool // a call has no id: the engine makes one up from its clock
}

func (t *turn) read(content jinja2.Value) error {
	t.plain = jinja2.None()
	if jinja2.IsText(content) {
		t.plain = content
		return nil
	}
	return blocks(content, t.block)
}

func (t *turn) block(kind string, b jinja2.Value) error {
	switch kind {
	case "text":
		s, _, err := optionalText(b, "text")
		if s != "" {
			t.parts = append(t.parts, textPart(jinja2.String(s)))
		}
		return err
	case "image":
		source := member(b, "source")
		switch {
		case source.IsNone() || source.IsDict() && len(source.AsDict().Keys) == 0:
			return nil
		case !source.IsDict():
			return rejected("the source of an image is not an object")
		}
		t.parts = append(t.parts, imagePart())
		return nil
	case "thinking":
		s, given, err := optionalText(b, "thinking")
		if given {
			t.thoughts, t.thought = append(t.thoughts, s), true
		}
		return err
	case "tool_use":
		return t.use(b)
	case "tool_result":
		return t.result(b)
	case "tool_addition", "tool_removal":
		return rejected("a change of tools outside of a system message")
	}
	return nil // redacted_thinking and tool_reference leave no trace
}

// imagePart stands for an image of whatever source: what it becomes in the
// prompt is not known here.
func imagePart() jinja2.Value {
	part, url := jinja2.Dict(), jinja2.Dict()
	jinja2.Put(url, "url", jinja2.String(""))
	jinja2.Put(part, "type", jinja2.String("image_url"))
	jinja2.Put(part, "image_url", url)
	return part
}

func (t *turn) use(b jinja2.Value) error {
	id, _, err := optionalText(b, "id")
	if err != nil {
		return err
	}
	if id == "" {
		id, t.idless = "call_0", true
	}
	name, _, err := optionalText(b, "name")
	if err != nil {
		return err
	}
	input := member(b, "input")
	switch {
	case input.IsNone():
		input = jinja2.Dict()
	case !input.IsDict():
		return rejected("the input of a tool_use is not an object")
	}
	arguments, err := jinja2.DumpJSON(input, true)
	if err != nil {
		return classify(err)
	}
	t.calls = append(t.calls, functionCall(jinja2.String(id), jinja2.String(name), jinja2.String(arguments)))
	return nil
}

// result reads what a tool returned. From the user it is a message of the tool, in
// front of what else the user says, whatever the order of the blocks.
func (t *turn) result(b jinja2.Value) error {
	content := member(b, "content")
	if !content.IsNone() && !content.IsList() && !jinja2.IsText(content) {
		return rejected("the content of a tool_result is neither text nor a list")
	}
	id, _, err := optionalText(b, "tool_use_id")
	if err != nil {
		return err
	}
	if t.role != "user" {
		if content.IsList() && content.AsList().Len() > 0 {
			return unrenderable("a tool_result of the assistant that is a list") // printed as Python prints it
		}
		s := ""
		if jinja2.IsText(content) {
			s = content.AsString()
		}
		t.parts = append(t.parts, textPart(jinja2.String("Tool result: "+s)))
		return nil
	}
	var texts []string
	var images, references []jinja2.Value
	if jinja2.IsText(content) {
		texts = []string{content.AsString()}
	}
	if content.IsList() {
		for _, item := range content.AsList().Items {
			if !item.IsDict() {
				return rejected("a block of a tool_result is not an object")
			}
			switch text(item, "type") {
			case "text":
				s, ok := jinja2.Get(item, "text")
				if ok && !jinja2.IsText(s) {
					return rejected("the text of a tool_result is not text")
				}
				texts = append(texts, text(item, "text"))
			case "image":
				if hasURL(member(item, "source")) {
					images = append(images, imagePart())
				}
			case "tool_reference":
				if name := firstText(item, "tool_name", "name"); name != "" {
					references = append(references, reference(name))
				}
			}
		}
	}
	t.before = append(t.before, toolMessage(id, jinja2.String(strings.Join(texts, "\n"))))
	if len(images) > 0 {
		t.before = append(t.before, message("user", jinja2.List(images)))
	}
	if len(references) > 0 {
		t.before = append(t.before, toolMessage(id, jinja2.List(references)))
	}
	return nil
}

func toolMessage(id string, content jinja2.Value) jinja2.Value {
	m := jinja2.Dict()
	jinja2.Put(m, "role", jinja2.String("tool"))
	jinja2.Put(m, "tool_call_id", jinja2.String(id))
	jinja2.Put(m, "content", content)
	return m
}

func reference(name string) jinja2.Value {
	part := jinja2.Dict()
	jinja2.Put(part, "type", jinja2.String("tool_reference"))
	jinja2.Put(part, "name", jinja2.String(name))
	return part
}

// hasURL reports whether an image's source names one; all but a URL is taken for
// data.
func hasURL(source jinja2.Value) bool {
	return !source.IsDict() || text(source, "type") != "url" || text(source, "url") != ""
}

func firstText(v jinja2.Value, keys ...string) string {
	for _, key := range keys {
		if s := text(v, key); s != "" {
			return s
		}
	}
	return ""
}

// messages are the messages of the chat that the turn becomes. A user who only
// returned what tools said has none of its own.
func (t *turn) messages() []jinja2.Value {
	m := jinja2.Dict()
	jinja2.Put(m, "role", jinja2.String(t.role))
	if t.thought {
		jinja2.Put(m, "reasoning", jinja2.String(strings.Join(t.thoughts, "")))
	}
	if len(t.calls) > 0 {
		jinja2.Put(m, "tool_calls", jinja2.List(t.calls))
	}
	content := t.plain
	switch {
	case len(t.parts) == 1 && text(t.parts[0], "type") == "text":
		content = member(t.parts[0], "text")
	case len(t.parts) > 0:
		content = jinja2.List(t.parts)
	}
	if !content.IsNone() {
		jinja2.Put(m, "content", content)
	} else if t.role == "user" {
		return t.before
	}
	return append(t.before, m)
}
