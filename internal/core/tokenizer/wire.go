package tokenizer

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"slices"
)

// Dialect is whose /tokenize a request is written for.
type Dialect uint8

// The dialects. Both answer with the same fields.
const (
	VLLM Dialect = iota
	SGLang
)

// What POST /tokenize takes from the client's body. vLLM's chat form has no
// reasoning_effort and no documents; its chat endpoint puts both among the
// template's variables, so that is where they go.
var (
	completionFields = []string{"prompt", "add_special_tokens"}
	// Tools, documents and efforts do not reach the template of what is embedded.
	embeddingChatFields = []string{
		"messages", "add_generation_prompt", "continue_final_message", "add_special_tokens",
		"chat_template", "chat_template_kwargs", "media_io_kwargs", "mm_processor_kwargs",
	}
	chatFields = []string{
		"messages", "tools", "add_generation_prompt", "continue_final_message", "add_special_tokens",
		"chat_template", "chat_template_kwargs", "media_io_kwargs", "mm_processor_kwargs",
	}
	variableFields = []string{"documents", "reasoning_effort"}
	sglangFields   = []string{"prompt", "messages", "tools", "add_special_tokens"}
)

// Fields that change the prompt and that no /tokenize takes.
var lostFields = []string{"input_ids", "prompt_embeds"}

// Errors of WriteRequests.
var (
	ErrShape    = errors.New("tokenize has no form for this shape of request")
	ErrNoPrompt = errors.New("request has nothing to tokenize")
	ErrBody     = errors.New("request body is not a JSON object")

	ErrManyPrompts = errors.New("request has more prompts than are asked about")

	ErrTruncated = errors.New("tokenize does not cut a prompt to truncate_prompt_tokens")
)

// maxAsked is for how many prompts of one request /tokenize is asked: it takes one at
// a time, and all of them have the deadline of one.
const maxAsked = 16

// WriteRequests makes the bodies of POST /tokenize from a client's body, one for each
// of its prompts; ErrManyPrompts above maxAsked. Values pass through byte by byte,
// because the order of keys shows in tool prompts; only the model is replaced. The
// status is Unverified when the body has a field that bears on the prompt and
// that the endpoint does not take in the measured way (vLLM 0.32.0: tools, tool
// calls, parts, template kwargs and continue_final_message gave the engine's ids).
func WriteRequests(dialect Dialect, t Text) ([][]byte, Status, error) {
	w := request{dialect: dialect, shape: t.Shape, status: Exact}
	fields, main := chatFields, "messages"
	switch t.Shape {
	case Chat:
	case EmbeddingChat:
		if dialect == SGLang { // 0.5.23 embeds no chats
			return nil, "", ErrShape
		}
		fields = embeddingChatFields
		// By default there is none here, and there is at /tokenize.
		w.members = set(w.members, "add_generation_prompt", jsontext.Value("false"))
		w.status = Unverified // kwargs of the server, which these chats do not get
	case Embedding:
		fields, main = completionFields, "prompt"
		if dialect == SGLang { // not measured
			w.status = Unverified
		}
	case Completion:
		fields, main = completionFields, "prompt"
	default:
		return nil, "", ErrShape
	}
	if err := w.collect(t.Body, fields); err != nil {
		return nil, "", ErrBody // the decoder's own error quotes the prompt
	}
	if w.truncates {
		return nil, "", ErrTruncated
	}
	i := slices.IndexFunc(w.members, func(m member) bool { return m.name == main })
	if i < 0 {
		return nil, "", ErrNoPrompt
	}
	w.setVariables()
	if main != "prompt" {
		return [][]byte{w.encode(t.Model)}, w.status, nil
	}
	list, err := prompts(w.members[i].value)
	if err != nil {
		return nil, "", err
	}
	bodies := make([][]byte, len(list))
	for k, p := range list {
		w.members[i].value = p
		bodies[k] = w.encode(t.Model)
	}
	return bodies, w.status, nil
}

// promptNames are the fields of bodies without a chat that hold the prompt, or do not.
var promptNames = map[Shape]map[string]string{
	Completion: {"text": "prompt"}, // SGLang's /generate
	Embedding:  {"input": "prompt", "prompt": ""},
}

type member struct {
	name  string
	value jsontext.Value
}

type request struct {
	dialect   Dialect
	shape     Shape
	status    Status
	members   []member // to send, in the client's order
	variables []member // to send among the template's variables
	truncates bool     // the engine cuts the prompt, and /tokenize would not
}

func (w *request) collect(body []byte, fields []string) error {
	_, err := Object(body, func(d *jsontext.Decoder, key []byte) error {
		name := string(key)
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		end := d.InputOffset() // what is sent on is the client's text, NaN and all
		value = body[end-int64(len(value)) : end]
		if main, ok := promptNames[w.shape][name]; ok {
			name = main
		}
		switch {
		case slices.Contains(fields, name):
			if w.dialect == SGLang && !slices.Contains(sglangFields, name) && value.Kind() != 'n' {
				w.status = Unverified
			}
			w.members = set(w.members, name, value)
		case slices.Contains(variableFields, name) && w.shape == Chat && value.Kind() != 'n':
			w.status = Unverified
			w.variables = set(w.variables, name, value)
		case slices.Contains(lostFields, name) && value.Kind() != 'n':
			w.status = Unverified
		case name == "truncate_prompt_tokens":
			w.truncates = value.Kind() != 'n'
		}
		return nil
	})
	return err
}

// set keeps the last value of a key at its first position, as Python does.
func set(list []member, name string, value jsontext.Value) []member {
	for i := range list {
		if list[i].name == name {
			list[i].value = value.Clone()
			return list
		}
	}
	return append(list, member{name, value.Clone()})
}

// prompts returns the texts to tokenize of a prompt or list of prompts.
func prompts(v jsontext.Value) (list []jsontext.Value, err error) {
	if v.Kind() == '"' {
		return []jsontext.Value{v}, nil
	}
	d := NewDecoder(v)
	if _, err := d.ReadToken(); err != nil || v.Kind() != '[' {
		return nil, ErrNoPrompt
	}
	for d.PeekKind() == '"' {
		if len(list) == maxAsked {
			return nil, ErrManyPrompts
		}
		p, err := d.ReadValue()
		if err != nil {
			return nil, ErrNoPrompt
		}
		list = append(list, p.Clone())
	}
	if d.PeekKind() != ']' || len(list) == 0 {
		return nil, ErrNoPrompt // ids, or an empty list
	}
	return list, nil
}

// setVariables puts what the template gets as a variable where it does.
func (w *request) setVariables() {
	const kwargs = "chat_template_kwargs"
	if len(w.variables) > 0 {
		var given []byte
		if i := slices.IndexFunc(w.members, func(m member) bool { return m.name == kwargs }); i >= 0 {
			given = w.members[i].value
		}
		w.members = set(w.members, kwargs, merge(given, w.variables))
	}
}

func (w *request) encode(model string) []byte {
	b := []byte{'{'}
	if model != "" {
		b, _ = jsontext.AppendQuote(append(b, `"model":`...), model) // an error means replaced UTF-8
		b = append(b, ',')
	}
	for _, m := range w.members {
		b = appendMember(b, m)
	}
	b[len(b)-1] = '}'
	return b
}

// merge adds members behind those of an object, so that they win as they do in
// vLLM's chat endpoint. Anything but an object is replaced.
func merge(object []byte, more []member) []byte {
	b := []byte{'{'}
	if len(object) > 1 && object[0] == '{' {
		if inner := bytes.TrimSpace(object[1 : len(object)-1]); len(inner) > 0 {
			b = append(append(b, inner...), ',')
		}
	}
	for _, m := range more {
		b = appendMember(b, m)
	}
	b[len(b)-1] = '}'
	return b
}

func appendMember(b []byte, m member) []byte {
	b = append(b, '"')
	b = append(b, m.name...) // one of our own names: nothing to escape
	b = append(b, '"', ':')
	b = append(b, m.value...)
	return append(b, ',')
}
