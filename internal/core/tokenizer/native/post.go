package native

import (
	"encoding/json"
	"fmt"
)

// surround is what a post-processor adds to the ids of a text.
type surround struct {
	before, after []uint32
	marks         bool // by more than a ByteLevel
	apart         bool // leaves several pieces, which the next processor does not take for one text
}

func parsePostProcessor(raw json.RawMessage) (surround, error) {
	if isNull(raw) {
		return surround{}, nil
	}
	kind, err := typeOf(raw)
	if err != nil {
		return surround{}, fmt.Errorf("post-processor: %w", err)
	}
	out, err := surroundOf(kind, raw)
	if err == nil {
		err = out.check()
	}
	if err != nil {
		return surround{}, fmt.Errorf("post-processor %s: %w", kind, err)
	}
	return out, nil
}

// check refuses what no engine puts around every text.
func (s surround) check() error {
	if len(s.before) > maxSurround || len(s.after) > maxSurround {
		return fmt.Errorf("%w: more than %d ids around a text", ErrUnsupported, maxSurround)
	}
	return nil
}

func surroundOf(kind string, raw json.RawMessage) (out surround, err error) {
	switch kind {
	case "ByteLevel": // only moves offsets
		return surround{}, nil
	case "TemplateProcessing":
		return template(raw)
	case "BertProcessing", "RobertaProcessing":
		var v struct {
			typed
			Sep            json.RawMessage `json:"sep"`
			Cls            json.RawMessage `json:"cls"`
			TrimOffsets    bool            `json:"trim_offsets"`
			AddPrefixSpace bool            `json:"add_prefix_space"`
		}
		if err := strict(raw, &v); err != nil {
			return surround{}, err
		}
		cls, err := marker(v.Cls)
		if err != nil {
			return surround{}, err
		}
		sep, err := marker(v.Sep)
		return surround{before: []uint32{cls}, after: []uint32{sep}, marks: true}, err
	case "Sequence":
		var v struct {
			typed
			Processors []json.RawMessage `json:"processors"`
		}
		if err := strict(raw, &v); err != nil {
			return surround{}, err
		}
		for _, x := range v.Processors {
			s, err := parsePostProcessor(x)
			if err != nil {
				return surround{}, err
			}
			if out.apart && s.marks { // it would mark every piece, or take two for a pair of texts
				return surround{}, fmt.Errorf("%w: a processor that adds ids behind TemplateProcessing", ErrUnsupported)
			}
			out.before = append(s.before, out.before...)
			out.after = append(out.after, s.after...)
			out.marks, out.apart = out.marks || s.marks, out.apart || s.apart
			if err := out.check(); err != nil {
				return surround{}, err
			}
		}
		return out, nil
	}
	return surround{}, ErrUnsupported
}

// marker reads ["[SEP]", 102].
func marker(raw json.RawMessage) (id uint32, err error) {
	var name string
	pair := []any{&name, &id}
	if err = json.Unmarshal(raw, &pair); err == nil && len(pair) != 2 {
		err = fmt.Errorf("%w: a marker of %d elements, want a text and an id", ErrUnsupported, len(pair))
	}
	return id, err
}

func template(raw json.RawMessage) (out surround, err error) {
	type piece struct {
		SpecialToken *struct {
			ID     string `json:"id"`
			TypeID int    `json:"type_id"`
		}
		Sequence *struct {
			ID     string `json:"id"`
			TypeID int    `json:"type_id"`
		}
	}
	var v struct {
		typed
		Single        []piece         `json:"single"`
		Pair          json.RawMessage `json:"pair"`
		SpecialTokens map[string]struct {
			ID     string   `json:"id"`
			IDs    []uint32 `json:"ids"`
			Tokens []string `json:"tokens"`
		} `json:"special_tokens"`
	}
	if err := strict(raw, &v); err != nil {
		return surround{}, err
	}
	out.marks, out.apart = true, len(v.Single) > 1
	texts := 0
	for _, p := range v.Single {
		switch {
		case p.Sequence != nil && p.Sequence.ID == "A":
			texts++
		case p.SpecialToken != nil:
			token, ok := v.SpecialTokens[p.SpecialToken.ID]
			if !ok {
				return surround{}, fmt.Errorf("special token %q is not defined", p.SpecialToken.ID)
			}
			if texts == 0 {
				out.before = append(out.before, token.IDs...)
			} else {
				out.after = append(out.after, token.IDs...)
			}
		default:
			return surround{}, fmt.Errorf("%w: template for one text with a second one", ErrUnsupported)
		}
		if err := out.check(); err != nil {
			return surround{}, err
		}
	}
	if texts != 1 {
		return surround{}, fmt.Errorf("%w: template with the text %d times", ErrUnsupported, texts)
	}
	return out, nil
}
