package chat

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
)

// Files are the files of a model repository that chats are rendered from, each
// nil when there is none.
type Files struct {
	TokenizerConfig []byte            // tokenizer_config.json: templates and special tokens
	ChatTemplate    []byte            // chat_template.jinja: replaces the default template
	ProcessorJSON   []byte            // chat_template.json: the processor's template
	SpecialTokens   []byte            // special_tokens_map.json: special tokens of older repositories
	Additional      map[string][]byte // additional_chat_templates/NAME.jinja
}

// maxFile bounds a file: tokenizer_config.json with its added tokens reaches
// 2 MB in the models of the tests.
const maxFile = 16 << 20

// specialTokens are the names under which transformers gives special tokens to a
// template.
var specialTokens = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// repository is what Files hold.
type repository struct {
	templates map[string]string // by name; the only one is "default"
	processor string
	specials  map[string]string
}

// read takes the files apart.
func (f Files) read() (*repository, error) {
	r := &repository{templates: map[string]string{}, specials: map[string]string{}}
	for _, file := range []struct {
		name string
		raw  []byte
		take func(jinja2.Value) error
	}{
		{"special_tokens_map.json", f.SpecialTokens, r.takeSpecials},
		{"tokenizer_config.json", f.TokenizerConfig, r.takeConfig},
		{"chat_template.json", f.ProcessorJSON, r.takeProcessor},
	} {
		if file.raw == nil {
			continue
		}
		if len(file.raw) > maxFile {
			return nil, fmt.Errorf("%s: %d bytes are more than %d", file.name, len(file.raw), maxFile)
		}
		v, err := jinja2.ParseJSON(file.raw)
		if err == nil && !v.IsDict() {
			err = errors.New("not a JSON object")
		}
		if err == nil {
			err = file.take(v)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.name, err)
		}
	}
	for name, source := range f.Additional {
		r.templates[name] = string(source)
	}
	if f.ChatTemplate != nil {
		r.templates["default"] = string(f.ChatTemplate)
	}
	for name, source := range r.templates {
		if !utf8.ValidString(source) {
			return nil, fmt.Errorf("chat template %q: not UTF-8", name)
		}
	}
	return r, nil
}

func (r *repository) takeConfig(v jinja2.Value) error {
	if err := r.takeSpecials(v); err != nil {
		return err
	}
	t, ok := jinja2.Get(v, "chat_template")
	switch {
	case !ok || t.IsNone():
	case jinja2.IsText(t):
		r.templates["default"] = t.AsString()
	case t.IsList():
		for _, item := range t.AsList().Items {
			name, source := text(item, "name"), text(item, "template")
			if name == "" {
				return errors.New("chat_template: an entry without a name")
			}
			r.templates[name] = source
		}
	case t.IsDict():
		for _, name := range t.AsDict().Keys {
			r.templates[name] = text(t, name)
		}
	default:
		return errors.New("chat_template: neither text nor a list")
	}
	return nil
}

// takeSpecials reads special tokens: text, or an object with content.
func (r *repository) takeSpecials(v jinja2.Value) error {
	for _, name := range specialTokens {
		t, ok := jinja2.Get(v, name)
		switch {
		case !ok || t.IsNone():
		case jinja2.IsText(t):
			r.specials[name] = t.AsString()
		case t.IsDict():
			r.specials[name] = text(t, "content")
		default:
			return errors.New(name + ": neither text nor an object")
		}
	}
	return nil
}

func (r *repository) takeProcessor(v jinja2.Value) error {
	r.processor = text(v, "chat_template")
	return nil
}

// text is the member of a dict that is text, else "".
func text(v jinja2.Value, key string) string {
	if !v.IsDict() {
		return ""
	}
	if m, ok := jinja2.Get(v, key); ok && jinja2.IsText(m) {
		return m.AsString()
	}
	return ""
}

// choose returns the template for a request: the engine's own argument, the
// processor's unless there are tools, tool_use when there are, else the default.
func (r *repository) choose(given string, tools bool) (name, source string, err error) {
	switch {
	case given != "":
		return "given", given, nil
	case r.processor != "" && !tools:
		return "processor", r.processor, nil
	}
	if source, ok := r.templates["tool_use"]; ok && tools {
		return "tool_use", source, nil
	}
	if source, ok := r.templates["default"]; ok {
		return "default", source, nil
	}
	if len(r.templates) == 0 {
		return "", "", unrenderable("the model has no chat template")
	}
	return "", "", unrenderable("the model has no default chat template, only " + strings.Join(keys(r.templates), ", "))
}
