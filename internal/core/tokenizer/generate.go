package tokenizer

import (
	"bytes"
	"encoding/json/jsontext"
	"slices"
	"strconv"
)

// generatePaths are the endpoints that compute, and that tell on demand what they
// made of the prompt.
var generatePaths = map[Shape]string{Chat: "/v1/chat/completions", Completion: "/v1/completions"}

// WriteGenerate makes a request for one generated token and the prompt's ids
// (return_token_ids of vLLM; 0.23.0 and 0.32.0 honour it). The body passes as it is:
// what stands behind it wins over what it says itself.
func WriteGenerate(t Text) (path string, body []byte, err error) {
	path, ok := generatePaths[t.Shape]
	if !ok {
		return "", nil, ErrShape
	}
	main := "prompt"
	if t.Shape == Chat {
		main = "messages"
	}
	end := bytes.LastIndexByte(t.Body, '}')
	if _, to, has := FindMember(t.Body, main); !has || end < to {
		return "", nil, ErrNoPrompt
	}
	more := []byte(`,"max_tokens":1,"stream":false,"return_token_ids":true`)
	if t.Model != "" {
		more = append(append(more, `,"model":`...), quoted(t.Model)...)
	}
	return path, slices.Concat(t.Body[:end], more, t.Body[end:]), nil
}

// ParseGenerated reads the prompt's ids off an answer, at most limit of them: at its
// top for a chat, in each choice for a completion, of which the first counts. An
// engine that does not know return_token_ids answers without, which is ErrNoIDs.
// Errors never quote the answer.
func ParseGenerated(b []byte, limit int) ([]uint32, error) {
	d := NewDecoder(b)
	var ids, ofChoice []uint32
	count := -1
	err := Members(d, func(name []byte) (err error) {
		switch string(name) {
		case "prompt_token_ids":
			ids, err = readIDs(d, limit)
		case "choices":
			ofChoice, err = idsOfChoice(d, limit)
		case "usage":
			count, err = promptTokens(d)
		default:
			err = d.SkipValue()
		}
		return err
	})
	if err == nil {
		err = End(d)
	}
	if len(ids) == 0 {
		ids = ofChoice
	}
	switch {
	case err != nil:
		return nil, reading(d, err)
	case len(ids) == 0:
		return nil, ErrNoIDs
	case count >= 0 && count != len(ids):
		return nil, ErrCount
	}
	return ids, nil
}

// readIDs reads a list of ids, or null.
func readIDs(d *jsontext.Decoder, limit int) ([]uint32, error) {
	raw, err := d.ReadValue()
	if err != nil || raw.Kind() == 'n' {
		return nil, err
	}
	return AppendIDs(nil, raw, limit)
}

// idsOfChoice reads a list of choices.
func idsOfChoice(d *jsontext.Decoder, limit int) (ids []uint32, err error) {
	if d.PeekKind() != '[' {
		return nil, d.SkipValue()
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for first := true; d.PeekKind() == '{'; first = false {
		err := Members(d, func(name []byte) (err error) {
			if !first || string(name) != "prompt_token_ids" {
				return d.SkipValue()
			}
			ids, err = readIDs(d, limit)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	t, err := d.ReadToken()
	if err == nil && t.Kind() != ']' {
		err = ErrNotObject
	}
	return ids, err
}

// promptTokens reads usage, -1 = it does not say.
func promptTokens(d *jsontext.Decoder) (n int, err error) {
	n = -1
	if d.PeekKind() != '{' {
		return n, d.SkipValue()
	}
	err = Members(d, func(name []byte) error {
		if string(name) != "prompt_tokens" {
			return d.SkipValue()
		}
		raw, err := d.ReadValue()
		if got, bad := strconv.Atoi(string(raw)); err == nil && bad == nil {
			n = got
		}
		return err
	})
	return n, err
}
