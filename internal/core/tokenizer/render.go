package tokenizer

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"slices"
	"strconv"
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
	ErrNoPlaces = errors.New("reply names media and not where they stand")
)

// WriteRender makes a request to a render endpoint from a client's body, which
// passes as it is but for the model: rewritten JSON would lose the order of keys,
// which shows in the prompts of tools.
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
	if t.Model == "" {
		return path, t.Body, nil
	}
	from, to, found := FindMember(t.Body, "model")
	if found {
		return path, slices.Concat(t.Body[:from], quoted(t.Model), t.Body[to:]), nil
	}
	open := bytes.IndexByte(t.Body, '{') + 1
	if open == 0 {
		return "", nil, ErrBody
	}
	member := append([]byte(`"model":`), quoted(t.Model)...)
	if !bytes.HasPrefix(bytes.TrimLeft(t.Body[open:], " \t\r\n"), []byte("}")) {
		member = append(member, ',')
	}
	return path, slices.Concat(t.Body[:open], member, t.Body[open:]), nil
}

// Rendered is one prompt of a render endpoint's reply.
type Rendered struct {
	IDs []uint32
	// Cut is where the first placeholder of an image, sound or video begins: what
	// stands there, and so the blocks from there on, the ids do not tell. Negative
	// = there is none.
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
	r := Rendered{Cut: -1}
	var m media
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
			return Members(d, func(name []byte) error { return m.read(d, string(name)) })
		}
		return d.SkipValue()
	})
	switch {
	case err != nil:
		return r, err
	case len(r.IDs) == 0:
		return r, ErrNoIDs
	case m.named && !m.placed:
		return r, ErrNoPlaces
	case m.placed:
		r.Cut = min(m.first, len(r.IDs))
	}
	return r, nil
}

// media is what features say of what is no text.
type media struct {
	named  bool // there are hashes of some
	placed bool // first is the offset of the first placeholder
	first  int
}

func (m *media) read(d *jsontext.Decoder, name string) error {
	switch name {
	case "mm_hashes", "mm_placeholders":
		return m.walk(d, name == "mm_placeholders")
	}
	return d.SkipValue()
}

// walk looks through lists and objects, which vLLM sorts by modality: offsets
// anywhere among placeholders, texts anywhere among hashes.
func (m *media) walk(d *jsontext.Decoder, places bool) error {
	switch d.PeekKind() {
	case '{':
		return Members(d, func(name []byte) error {
			if !places || string(name) != "offset" {
				return m.walk(d, places)
			}
			raw, err := d.ReadValue()
			if err != nil {
				return err
			}
			if n, err := strconv.Atoi(string(raw)); err == nil && n >= 0 && (!m.placed || n < m.first) {
				m.placed, m.first = true, n
			}
			return nil
		})
	case '[':
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		for k := d.PeekKind(); k != ']' && k != 0; k = d.PeekKind() {
			if err := m.walk(d, places); err != nil {
				return err
			}
		}
		_, err := d.ReadToken()
		return err
	case '"':
		m.named = true
	}
	return d.SkipValue()
}
