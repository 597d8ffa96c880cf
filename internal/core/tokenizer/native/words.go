package native

import (
	"fmt"

	"github.com/eppctl/eppctl/internal/core/tokenizer/wordpiece"
)

// useWords is for the models that take words as the pre-tokenizer cuts them: WordPiece,
// which looks for their parts, and WordLevel, which does not.
func (t *Tokenizer) useWords(m *modelFile, pre *preTokenizer) error {
	switch {
	case m.vocab == nil:
		return errNoVocabulary
	case pre.byteLevel:
		return fmt.Errorf("model %s with ByteLevel: %w", m.kind, ErrUnsupported)
	case m.unkToken == nil:
		return fmt.Errorf("model %s without unk_token", m.kind)
	}
	entries := make(map[string]uint32, m.vocab.Count())
	for id := range uint32(m.vocab.Len()) {
		if text := m.vocab.Bytes(id); len(text) > 0 {
			entries[string(text)] = id
		}
	}
	g := &general{steps: pre.steps}
	switch m.kind {
	case "WordPiece":
		if m.maxChars == nil {
			return fmt.Errorf("model WordPiece without max_input_chars_per_word")
		}
		model, err := wordpiece.New(entries, m.prefix, *m.unkToken, *m.maxChars)
		if err != nil {
			return fmt.Errorf("model WordPiece: %w", err)
		}
		g.piece = func(out []uint32, piece string, _ *scratch) ([]uint32, error) {
			return model.Append(out, piece), nil
		}
	default:
		unknown, ok := entries[*m.unkToken]
		if !ok {
			return fmt.Errorf("unk_token %q is not in the vocabulary", *m.unkToken)
		}
		g.piece = func(out []uint32, piece string, _ *scratch) ([]uint32, error) {
			id, ok := entries[piece]
			if !ok {
				id = unknown
			}
			return append(out, id), nil
		}
	}
	t.info.Tokens = m.vocab.Count()
	t.pieces.of = m.vocab.Bytes
	t.info.Split = "steps"
	if pre.regex {
		t.info.Split = "regex"
	}
	t.setGeneral(g, nil)
	return nil
}
