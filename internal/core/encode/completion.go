package encode

import (
	"context"
	"encoding/json/jsontext"
	"slices"
	"strconv"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// completionBody is what of a body without messages bears on its ids. Of a key that
// comes twice the last value counts, as in Python.
type completionBody struct {
	prompt   jsontext.Value // "prompt", or "text" of SGLang's /generate
	special  jsontext.Value // add_special_tokens
	truncate jsontext.Value // truncate_prompt_tokens
	side     jsontext.Value // truncation_side
	padding  jsontext.Value // of what is embedded
	embeds   bool           // the prompt is given as embeddings too
}

// promptFields are the names of the field that holds the prompt.
var promptFields = map[tokenizer.Shape][]string{tokenizer.Completion: {"prompt", "text"}, tokenizer.Embedding: {"input"}}

func readCompletion(engine chat.Engine, shape tokenizer.Shape, body []byte) (*completionBody, error) {
	b := &completionBody{}
	constants, err := tokenizer.Object(body, func(d *jsontext.Decoder, name []byte) error {
		var to *jsontext.Value
		switch string(name) {
		case "prompt", "text", "input":
			if !slices.Contains(promptFields[shape], string(name)) {
				return d.SkipValue()
			}
			to = &b.prompt
		case "padding":
			to = &b.padding
		case "add_special_tokens":
			to = &b.special
		case "truncate_prompt_tokens":
			to = &b.truncate
		case "truncation_side":
			to = &b.side
		case "prompt_embeds", "input_embeds":
			b.embeds = b.embeds || d.PeekKind() != 'n'
			return d.SkipValue()
		default:
			return d.SkipValue()
		}
		value, err := d.ReadValue()
		*to = value.Clone()
		return err
	})
	if err != nil { // the decoder's own error quotes the prompt
		return nil, ErrBody
	}
	if constants {
		return b, chat.CheckConstants(engine, shape == tokenizer.Embedding, body)
	}
	return b, nil
}

// completion encodes the prompts as /v1/completions and /v1/embeddings do: with what the
// post-processor adds, unless the body says otherwise.
func (m *Model) completion(ctx context.Context, e *Encoding, shape tokenizer.Shape, body []byte) error {
	b, err := readCompletion(m.o.Engine, shape, body)
	if err != nil {
		return err
	}
	if b.embeds {
		return ErrNoPrompt
	}
	texts, err := texts(b.prompt)
	if err != nil {
		return err
	}
	special, err := flag("add_special_tokens", b.special, true)
	if err != nil {
		return err
	}
	limit, err := b.limit()
	if err != nil {
		return err
	}
	if shape == tokenizer.Embedding {
		if err := m.embedding(e, b); err != nil {
			return err
		}
	}
	if m.o.Engine != chat.VLLM && (given(b.special) || limit > 0) {
		e.Doubts = append(e.Doubts, "add_special_tokens and truncate_prompt_tokens are known of vLLM alone")
	}
	for _, text := range texts[1:] {
		if err := m.one(ctx, e, text, special, limit); err != nil {
			return err
		}
		e.Further = append(e.Further, e.IDs)
	}
	return m.one(ctx, e, texts[0], special, limit)
}

// one sets the ids of one prompt, of which the last limit are kept; 0 = all.
func (m *Model) one(ctx context.Context, e *Encoding, text string, special bool, limit int) error {
	if limit == 0 {
		return m.encode(ctx, e, text, special)
	}
	if err := m.encode(ctx, e, text, false); err != nil {
		return err
	}
	if special {
		before, after := m.o.Tokenizer.Around()
		e.IDs = slices.Concat(before, truncate(e.IDs, limit-len(before)-len(after)), after)
		m.doubtSpecials(e)
	}
	e.IDs = truncate(e.IDs, limit)
	return nil
}

// embedding refuses what may change the ids of a text to be embedded and was not
// measured: which end is cut by default is the tokenizer's own choice (vLLM's pooling
// requests, read), and padding fills up to a length that only the engine knows.
func (m *Model) embedding(e *Encoding, b *completionBody) error {
	switch {
	case given(b.truncate):
		return &chat.Unrenderable{Reason: "truncate_prompt_tokens of an embedding"}
	case given(b.padding):
		return &chat.Unrenderable{Reason: "padding of an embedding"}
	}
	if m.o.Engine != chat.VLLM {
		e.Doubts = append(e.Doubts, "how texts to be embedded are tokenized is known of vLLM alone")
	}
	return nil
}

// truncate keeps the last n ids. vLLM adds specials after that (0.32.0, measured).
func truncate(ids []uint32, n int) []uint32 {
	return ids[max(len(ids)-max(n, 0), 0):]
}

// limit is truncate_prompt_tokens, 0 = none. -1 stands for the engine's own limit,
// which is not known here.
func (b *completionBody) limit() (int, error) {
	if !given(b.truncate) {
		return 0, nil
	}
	n, err := strconv.Atoi(string(b.truncate))
	if err != nil || n < 1 {
		return 0, &chat.Unrenderable{Reason: "truncate_prompt_tokens is not a number of tokens"}
	}
	if given(b.side) && string(b.side) != `"left"` {
		return 0, &chat.Unrenderable{Reason: "truncation_side is not left"}
	}
	return n, nil
}

// texts are those of a prompt, or of a list of such: at least one.
func texts(v jsontext.Value) ([]string, error) {
	if v.Kind() != '[' {
		text, err := textOf(v)
		return []string{text}, err
	}
	d := tokenizer.NewDecoder(v)
	if _, err := d.ReadToken(); err != nil || d.PeekKind() != '"' {
		return nil, ErrNoPrompt // ids, or an empty list
	}
	var list []string
	for d.PeekKind() != ']' {
		if len(list) == tokenizer.MaxPrompts {
			return nil, tokenizer.ErrManyPrompts
		}
		item, err := d.ReadValue()
		if err != nil {
			return nil, ErrBody
		}
		text, err := textOf(item)
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, nil
}

func textOf(v jsontext.Value) (string, error) {
	if v.Kind() != '"' {
		return "", ErrNoPrompt
	}
	text, err := jsontext.AppendUnquote(nil, v)
	if err != nil { // what is no Unicode would be replaced
		return "", ErrNotText
	}
	return string(text), nil
}

func given(v jsontext.Value) bool { return v != nil && v.Kind() != 'n' }

// flag is a member that must be a boolean. Pydantic takes other values for one too;
// who sends them is asked to be tokenized elsewhere.
func flag(name string, v jsontext.Value, fallback bool) (bool, error) {
	switch {
	case v == nil:
		return fallback, nil
	case v.Kind() == 't':
		return true, nil
	case v.Kind() == 'f':
		return false, nil
	}
	return false, &chat.Unrenderable{Reason: name + " is not a boolean"}
}
