package encode

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// chat renders a conversation and encodes the text. The template prints what stands
// before a prompt itself, so nothing is added unless the body says so.
func (m *Model) chat(ctx context.Context, e *Encoding, api chat.API, body []byte) error {
	if m.o.Chat == nil {
		if u, ok := errors.AsType[*chat.Unrenderable](m.o.NoChat); ok { // which says so itself
			return fmt.Errorf("%w: %s", ErrNoChat, u.Reason)
		}
		if m.o.NoChat != nil {
			return fmt.Errorf("%w: %w", ErrNoChat, m.o.NoChat)
		}
		return ErrNoChat
	}
	special := false
	if api == chat.Completions || api == chat.Embeddings { // the other forms have none of these options
		var err error
		if special, err = m.chatOptions(body); err != nil {
			return err
		}
	}
	var now time.Time
	if m.o.Now != nil {
		now = m.o.Now()
	}
	p, err := m.o.Chat.RenderAPI(ctx, api, body, now)
	if err != nil {
		return err
	}
	if !utf8.ValidString(p.Text) {
		return ErrNotText
	}
	text := p.Text
	for _, w := range p.Warnings {
		if w == chat.DateInPrompt || w == chat.Unverified {
			e.Doubts = append(e.Doubts, string(w))
		}
	}
	known := p.Exact == len(text)
	if !known {
		text = text[:m.o.Tokenizer.Settled(text, p.Exact)]
	}
	special = (special || p.Special) && !p.Alone
	if len(p.Apart) > 0 {
		return m.encodeApart(ctx, e, text, p.Apart)
	}
	if err := m.encode(ctx, e, text, special); err != nil || known {
		return err
	}
	if special {
		_, after := m.o.Tokenizer.Around()
		e.IDs = e.IDs[:len(e.IDs)-len(after)]
	}
	e.Cut = len(e.IDs)
	return nil
}

// chatOptions reads what bears on the ids and not on the text.
func (m *Model) chatOptions(body []byte) (special bool, err error) {
	var add, truncate jsontext.Value
	_, err = tokenizer.Object(body, func(d *jsontext.Decoder, name []byte) error {
		var to *jsontext.Value
		switch string(name) {
		case "add_special_tokens":
			to = &add
		case "truncate_prompt_tokens":
			to = &truncate
		default:
			return d.SkipValue()
		}
		value, err := d.ReadValue()
		*to = value.Clone()
		return err
	})
	switch {
	case err != nil:
		return false, ErrBody
	case given(truncate):
		return false, &chat.Unrenderable{Reason: "truncate_prompt_tokens of a chat"}
	case m.o.Engine != chat.VLLM && given(add):
		return false, &chat.Unrenderable{Reason: "add_special_tokens of a chat is known of vLLM alone"}
	}
	return flag("add_special_tokens", add, false)
}
