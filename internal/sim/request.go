package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// request is what the simulator reads of an OpenAI completion or chat body, and
// of the two forms of /tokenize.
type request struct {
	Model               string          `json:"model"`
	Prompt              json.RawMessage `json:"prompt"`
	Messages            []message       `json:"messages"`
	Tools               json.RawMessage `json:"tools"`
	AddGenerationPrompt *bool           `json:"add_generation_prompt"`
	ContinueFinal       bool            `json:"continue_final_message"`
	AddSpecialTokens    *bool           `json:"add_special_tokens"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Stream              bool            `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	CacheSalt      string `json:"cache_salt"`
	ReturnTokenIDs bool   `json:"return_token_ids"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

var errBatch = errors.New("the simulator takes one prompt per request")

// tokens returns the prompt's ids: messages if there are any, else the prompt.
func (r *request) tokens() ([]uint32, error) {
	if len(r.Messages) > 0 {
		return r.chatTokens()
	}
	if len(r.Prompt) == 0 {
		return nil, errors.New("prompt or messages: missing")
	}
	return r.promptTokens(r.Prompt)
}

// tokens are the ids that the engine computes for a request.
func (e *Engine) tokens(ctx context.Context, q *request, body []byte) ([]uint32, error) {
	shape := tokenizer.Chat
	if len(q.Messages) == 0 {
		shape = tokenizer.Completion
	}
	if e.opt.Encoder == nil || shape == tokenizer.Completion && !bytes.HasPrefix(q.Prompt, []byte(`"`)) {
		return q.tokens()
	}
	res, err := e.opt.Encoder.Tokenize(ctx, tokenizer.Text{Shape: shape, Body: body})
	return res.IDs, err
}

func (r *request) promptTokens(raw json.RawMessage) ([]uint32, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		var ids []uint32
		if r.AddSpecialTokens == nil || *r.AddSpecialTokens {
			ids = append(ids, tokBOS)
		}
		return encode(ids, text), nil
	}
	var ids []uint32
	if json.Unmarshal(raw, &ids) == nil {
		if len(ids) == 0 {
			return nil, errors.New("prompt: empty list of token ids")
		}
		return ids, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		if len(list) != 1 {
			return nil, errBatch
		}
		return r.promptTokens(list[0])
	}
	return nil, fmt.Errorf("prompt: neither text nor token ids: %.20s", raw)
}

// chatTokens applies the simulator's chat template: a role token, the content
// and an end token per message, then the assistant's role token.
func (r *request) chatTokens() ([]uint32, error) {
	ids := []uint32{tokBOS}
	if len(r.Tools) > 0 && string(r.Tools) != "null" {
		ids = append(encode(append(ids, tokTools), string(r.Tools)), tokEnd)
	}
	for i, m := range r.Messages {
		ids = append(ids, roleToken(m.Role))
		var err error
		if ids, err = appendContent(ids, m.Content); err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", i, err)
		}
		if r.ContinueFinal && i == len(r.Messages)-1 {
			return ids, nil
		}
		ids = append(ids, tokEnd)
	}
	if r.AddGenerationPrompt == nil || *r.AddGenerationPrompt {
		ids = append(ids, tokAssistant)
	}
	return ids, nil
}

func appendContent(ids []uint32, raw json.RawMessage) ([]uint32, error) {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return encode(ids, text), nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, fmt.Errorf("content: neither text nor parts: %.20s", raw)
	}
	for _, p := range parts {
		if p.Type == "text" {
			ids = encode(ids, p.Text)
		} else {
			ids = append(ids, tokMedia)
		}
	}
	return ids, nil
}

// outputLimit is the number of tokens to generate. There is no end-of-sequence
// token in the simulator: every answer has this length.
func (r *request) outputLimit() int {
	for _, n := range []*int{r.MaxCompletionTokens, r.MaxTokens} {
		if n != nil && *n > 0 {
			return *n
		}
	}
	return 16 // OpenAI's default for completions
}
