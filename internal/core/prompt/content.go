package prompt

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"

	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// promptField reads a prompt: text, ids, or a list of either.
func (w *walker) promptField() error {
	w.prompt = content{form: other}
	p := &w.prompt
	kind := w.d.PeekKind()
	if kind == '[' {
		if list, shift, ok := tokenizer.TakeIDs(w.d, w.lim.Tokens); ok {
			w.shift += shift
			*p = content{form: ids, prompts: 1, ids: list, tokens: len(list)}
			return nil
		}
	}
	raw, err := w.d.ReadValue()
	if err != nil {
		return err
	}
	switch kind {
	case '"':
		*p = content{form: text, prompts: 1, chars: len(raw) - 2}
		return nil
	case 'n':
		*p = content{}
		return nil
	case '[':
	default:
		return nil
	}
	switch list, err := tokenizer.AppendIDs(nil, raw, w.lim.Tokens); {
	case err == nil && len(list) > 0:
		*p = content{form: ids, prompts: 1, ids: list, tokens: len(list)}
		return nil
	case errors.Is(err, tokenizer.ErrManyIDs):
		return nil
	}
	return w.batch(raw)
}

// batch reads a list of prompts, all of text or all of ids: engines refuse a mixture.
func (w *walker) batch(raw []byte) error {
	d := tokenizer.NewDecoder(raw)
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		item, err := d.ReadValue()
		if err != nil {
			return err
		}
		w.prompt.add(item, w.lim.Tokens)
	}
	if w.prompt.prompts > tokenizer.MaxPrompts {
		w.prompt.form = other
	}
	return nil
}

// add takes in one prompt of a list. What is none, or of another form than the first,
// leaves the list not understood; its size counts all the same.
func (c *content) add(item jsontext.Value, limit int) {
	c.prompts++
	is := other
	switch item.Kind() {
	case '"':
		is = text
		c.chars += len(item) - 2
	case '[':
		if c.prompts > tokenizer.MaxPrompts {
			c.tokens += bytes.Count(item, []byte{','}) + 1
			break
		}
		list, err := tokenizer.AppendIDs(nil, item, limit-c.tokens)
		c.tokens += len(list)
		switch {
		case err != nil || len(list) == 0:
		case c.prompts == 1:
			is, c.ids = ids, list
		default:
			is, c.further = ids, append(c.further, list)
		}
	}
	switch {
	case c.prompts == 1:
		c.form = is
	case is != c.form:
		c.form = other
	}
}

// messages reads a conversation: a string, or a list of messages or items.
func (w *walker) messages() error {
	p := &w.prompt
	switch w.d.PeekKind() {
	case '"':
		p.form, p.prompts = text, 1
		return w.bulk(p)
	case '[':
	default:
		if w.d.PeekKind() != 'n' {
			p.form = other
		}
		return w.d.SkipValue()
	}
	p.form = other
	if _, err := w.d.ReadToken(); err != nil {
		return err
	}
	for w.d.PeekKind() != ']' {
		if w.d.PeekKind() == 0 {
			break // ReadToken below says what is wrong
		}
		p.form, p.prompts = text, 1
		if err := w.message(); err != nil {
			return err
		}
	}
	_, err := w.d.ReadToken()
	return err
}

func (w *walker) message() error {
	if w.d.PeekKind() != '{' {
		return w.bulk(&w.prompt)
	}
	return tokenizer.Members(w.d, func(name []byte) error {
		switch string(name) {
		case "content", "output": // an item's: what a tool returned
			if w.d.PeekKind() == '[' {
				return w.parts()
			}
		}
		return w.bulk(&w.prompt)
	})
}

// parts reads a list of content parts, which may hold such lists themselves.
func (w *walker) parts() error {
	if _, err := w.d.ReadToken(); err != nil {
		return err
	}
	for k := w.d.PeekKind(); k != ']' && k != 0; k = w.d.PeekKind() {
		if err := w.part(); err != nil {
			return err
		}
	}
	_, err := w.d.ReadToken()
	return err
}

// textParts are the types of content parts that hold nothing but text, of the
// chat, Responses and Anthropic APIs.
var textParts = map[string]bool{
	"text": true, "input_text": true, "output_text": true, "refusal": true, "thinking": true,
	"tool_result": true, "tool_use": true, "tool_reference": true, "tool_addition": true, "tool_removal": true,
	"redacted_thinking": true, "reasoning_text": true,
}

// part reads one content part. A part without a type is text when that is all it
// has; every other one is counted as media, whose place among the ids is not
// known here.
func (w *walker) part() error {
	if w.d.PeekKind() != '{' {
		return w.bulk(&w.prompt)
	}
	var kind string
	chars, more := 0, false
	err := tokenizer.Members(w.d, func(name []byte) (err error) {
		switch string(name) {
		case "type":
			kind, _, err = w.text()
			return err
		case "text":
		case "content":
			if more = true; w.d.PeekKind() == '[' {
				return w.parts()
			}
		default:
			more = true
		}
		raw, err := w.d.ReadValue()
		chars += len(raw)
		return err
	})
	switch {
	case textParts[kind] || kind == "" && !more:
		w.prompt.chars += chars
	default:
		w.prompt.media++ // not its size: that is base64, not tokens
	}
	return err
}
