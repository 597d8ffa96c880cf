package chat

import (
	"strings"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
)

// textFields are the types of parts that are text, and where they hold it.
var textFields = map[string]string{"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal", "thinking": "thinking"}

// modalities are the types of parts that are not, and what vLLM calls them to a
// template.
var modalities = map[string]string{
	"image_url": "image", "input_image": "image", "image_pil": "image", "image_embeds": "image",
	"audio_url": "audio", "input_audio": "audio", "audio_embeds": "audio",
	"video_url": "video", "video_embeds": "video",
}

// content prepares the content of m, which becomes the message into: a list of
// parts, or text.
func (p *preparation) content(m jinja2.Value, role string, into jinja2.Value) (jinja2.Value, error) {
	none := jinja2.None()
	var parts []jinja2.Value
	switch c := member(m, "content"); {
	case c.IsNone():
	case jinja2.IsText(c):
		if p.format == StringFormat && !(role == "system" && strings.HasPrefix(c.AsString(), billing)) {
			return c, nil
		}
		parts = []jinja2.Value{textPart(c)}
	case c.IsList():
		var err error
		if parts, err = p.parts(c.AsList().Items); err != nil {
			return none, err
		}
	default:
		return none, rejected("the content of a message is neither text nor a list")
	}
	if role == "system" {
		parts = p.dropBilling(parts)
	}
	for i, part := range parts {
		kind := text(part, "type")
		if p.media == nil && kind != "text" && kind != "tool_reference" {
			p.media = &place{into, i}
		}
	}
	if p.format == PartsFormat && (role != "tool" || !allText(parts)) {
		return jinja2.List(parts), nil
	}
	var texts []string
	for _, part := range parts {
		s := text(part, "text")
		if text(part, "type") == "tool_reference" {
			s = text(part, "name")
		}
		// Of a list, vLLM leaves empty text out of what it joins; a tool's
		// content, which it joins from parts, keeps it.
		if s != "" || p.format == PartsFormat {
			texts = append(texts, s)
		}
	}
	return jinja2.String(strings.Join(texts, "\n")), nil
}

func allText(parts []jinja2.Value) bool {
	for _, part := range parts {
		if text(part, "type") != "text" {
			return false
		}
	}
	return true
}

func textPart(s jinja2.Value) jinja2.Value {
	part := jinja2.Dict()
	jinja2.Put(part, "type", jinja2.String("text"))
	jinja2.Put(part, "text", s)
	return part
}

// parts brings the parts of a list to the three kinds a template sees: text,
// media, tool_reference.
func (p *preparation) parts(list []jinja2.Value) ([]jinja2.Value, error) {
	var out []jinja2.Value
	for _, part := range list {
		if !part.IsDict() {
			return nil, rejected("a content part is not an object")
		}
		kind := member(part, "type")
		if !jinja2.IsText(kind) {
			if kind.IsNone() && hasMedia(part) {
				return nil, unrenderable("a content part without a type")
			}
			return nil, rejected("a content part has no type")
		}
		field, isText := textFields[kind.AsString()]
		modality := modalities[kind.AsString()]
		switch {
		case isText:
			s := member(part, field)
			if s.IsNone() {
				if field == "text" || field == "refusal" {
					continue // as vLLM does, with a warning in its log
				}
				return nil, rejected("a content part is without its text")
			}
			if !jinja2.IsText(s) {
				return nil, rejected("the text of a content part is not text")
			}
			out = append(out, textPart(s))
		case modality != "":
			media := jinja2.Dict()
			jinja2.Put(media, "type", jinja2.String(modality))
			out = append(out, media)
		case kind.AsString() == "tool_reference":
			reference := jinja2.Dict()
			jinja2.Put(reference, "type", kind)
			jinja2.Put(reference, "name", member(part, "name"))
			out = append(out, reference)
		case kind.AsString() == "prompt_embeds":
			return nil, unrenderable("a content part of embeddings")
		default:
			return nil, rejected("a content part has an unknown type")
		}
	}
	return out, nil
}

func hasMedia(part jinja2.Value) bool {
	for key := range modalities {
		if _, ok := jinja2.Get(part, key); ok {
			return true
		}
	}
	return false
}

// billing begins the line that Claude Code puts first into a system prompt. It
// changes with every request, and vLLM takes it out.
const billing = "x-anthropic-billing-header"

func (p *preparation) dropBilling(parts []jinja2.Value) []jinja2.Value {
	var out []jinja2.Value
	for _, part := range parts {
		s := text(part, "text")
		if text(part, "type") != "text" || !strings.HasPrefix(s, billing) {
			out = append(out, part)
			continue
		}
		p.warn(BillingHeaderRemoved)
		if _, rest, _ := strings.Cut(s, "\n"); rest != "" {
			out = append(out, textPart(jinja2.String(rest)))
		}
	}
	return out
}
