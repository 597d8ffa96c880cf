package tokenizer

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"slices"
)

// renderPaths are the endpoints at which engines tell what they make of a request:
// vLLM both (on `vllm launch render` always, on `vllm serve` by version and flag),
// SGLang's renderer the one of chats.
var renderPaths = map[Shape]string{
	Chat:       "/v1/chat/completions/render",
	Completion: "/v1/completions/render",
	Messages:   "/v1/messages/render",
	Responses:  "/v1/responses/render",
}

// Errors of ParseRender, besides those of ParseResponse.
var (
	ErrNoPlaces  = errors.New("reply names media and not where they stand")
	ErrManyItems = errors.New("reply tells of more media than are read")
)

// namesOnly asks vLLM to leave the pixels out of what it tells of images: they are
// megabytes. Later releases call it mm_payload, earlier ones return_mm_kwargs. It stands
// last, where Python takes it instead of what the client may have set: pixels of images
// of 14 kB in all were a reply of 10 MB.
const namesOnly = `"mm_payload":"none","return_mm_kwargs":false`

// WriteRender makes a request to a render endpoint from a client's body, which
// passes as it is but for the model, and what keeps the reply small: rewritten JSON
// would lose the order of keys, which shows in the prompts of tools.
func WriteRender(dialect Dialect, t Text) (path string, body []byte, err error) {
	path, ok := renderPaths[t.Shape]
	if !ok || dialect == SGLang && t.Shape != Chat {
		return "", nil, ErrShape
	}
	if t.Shape == Completion {
		if _, _, has := FindMember(t.Body, "prompt"); !has { // SGLang's /generate
			return "", nil, ErrShape
		}
	}
	body = t.Body
	from, to, found := FindMember(body, "model")
	switch {
	case t.Model == "":
	case found:
		body = slices.Concat(body[:from], quoted(t.Model), body[to:])
	default:
		if body, err = withMember(body, slices.Concat([]byte(`"model":`), quoted(t.Model))); err != nil {
			return "", nil, err
		}
	}
	if t.Media && dialect == VLLM {
		if body, err = withMember(body, []byte(namesOnly)); err != nil {
			return "", nil, err
		}
	}
	return path, body, nil
}

// withMember puts a member behind the others of an object.
func withMember(body, member []byte) ([]byte, error) {
	open, end := bytes.IndexByte(body, '{'), bytes.LastIndexByte(body, '}')
	if open < 0 || end < open {
		return nil, ErrBody
	}
	var comma []byte
	if len(bytes.TrimSpace(body[open+1:end])) > 0 {
		comma = []byte{','}
	}
	return slices.Concat(body[:end], comma, member, body[end:]), nil
}

// Rendered is one prompt of a render endpoint's reply.
type Rendered struct {
	IDs []uint32
	// Items are the images, sounds and videos, in the prompt's order.
	Items []Item
	// Cut is where the first one begins that the engine does not name: what stands
	// there, and so the blocks from there on, the ids do not tell. Negative = there
	// is none.
	Cut int
}

// ParseRender reads the prompts of a reply: the one of a chat, or the list that
// completions are answered with. In all there are at most limit ids. Errors never
// quote the reply.
func ParseRender(b []byte, limit int) ([]Rendered, error) {
	d := NewDecoder(b)
	if d.PeekKind() != '[' {
		one, err := readRendered(d, limit)
		if err != nil {
			return nil, reading(d, err)
		}
		return []Rendered{one}, nil
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, errSyntax(d)
	}
	var list []Rendered
	for d.PeekKind() == '{' {
		if len(list) == MaxPrompts {
			return nil, ErrManyPrompts
		}
		one, err := readRendered(d, limit)
		if err != nil {
			return nil, reading(d, err)
		}
		limit -= len(one.IDs)
		list = append(list, one)
	}
	if t, err := d.ReadToken(); err != nil || t.Kind() != ']' {
		return nil, errSyntax(d)
	}
	if len(list) == 0 {
		return nil, ErrNoIDs
	}
	return list, nil
}

// reading replaces errors of the decoder, which quote the text.
func reading(d *jsontext.Decoder, err error) error {
	if syntax := (*jsontext.SyntacticError)(nil); errors.As(err, &syntax) {
		return errSyntax(d)
	}
	return err
}

func readRendered(d *jsontext.Decoder, limit int) (Rendered, error) {
	var r Rendered
	var f features
	err := Members(d, func(name []byte) error {
		switch string(name) {
		case "token_ids", "input_ids": // vLLM, SGLang
			raw, err := d.ReadValue()
			if err != nil {
				return err
			}
			r.IDs, err = AppendIDs(r.IDs[:0], raw, limit)
			return err
		case "features":
			if d.PeekKind() != '{' {
				return d.SkipValue()
			}
			return Members(d, func(name []byte) error { return f.member(d, string(name)) })
		}
		return d.SkipValue()
	})
	switch {
	case err != nil:
		return r, err
	case len(r.IDs) == 0:
		return r, ErrNoIDs
	}
	r.Items, r.Cut, err = f.items(len(r.IDs))
	return r, err
}
