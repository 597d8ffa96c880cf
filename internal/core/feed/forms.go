package feed

import (
	"fmt"
	"slices"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// forms are the shapes that engines turn into chats.
var forms = map[tokenizer.Shape]chat.API{tokenizer.Messages: chat.Messages, tokenizer.Responses: chat.Responses}

// asChat turns a request of another form into the chat that the engine makes of it;
// texts and chats stay as they are. The claim is what may be said of that chat.
func asChat(d tokenizer.Dialect, t tokenizer.Text) (tokenizer.Text, tokenizer.Status, error) {
	form, ok := forms[t.Shape]
	if !ok {
		return t, tokenizer.Exact, nil
	}
	engine := chat.VLLM
	if d == tokenizer.SGLang {
		engine = chat.SGLang
	}
	body, doubts, err := chat.ToCompletions(engine, form, t.Body)
	if err != nil {
		return t, "", fmt.Errorf("%w: %w", tokenizer.ErrShape, err)
	}
	t.Shape, t.Body = tokenizer.Chat, body
	if slices.Contains(doubts, chat.Unverified) {
		return t, tokenizer.Unverified, nil
	}
	return t, tokenizer.Exact, nil
}
