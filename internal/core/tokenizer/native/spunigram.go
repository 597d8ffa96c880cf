package native

import (
	"fmt"

	"github.com/eppctl/eppctl/internal/core/tokenizer/unigram"
)

// useSPUnigram is for a model of type UNIGRAM: the whole text is one piece, in which
// the user's pieces are entries that score more than others.
func (t *Tokenizer) useSPUnigram(m *spModel) error {
	if err := t.setWholeText(m); err != nil {
		return err
	}
	entries := make([]unigram.Piece, len(m.pieces))
	for id, p := range m.pieces {
		switch p.kind {
		case typeNormal, typeUserDefined:
			entries[id] = unigram.Piece{Text: string(p.text), Score: float64(p.score), User: p.kind == typeUserDefined}
		}
	}
	unknown, bytes := m.unknown()
	model, err := unigram.NewSentencePiece(entries, unknown, bytes)
	if err != nil {
		return fmt.Errorf("model Unigram: %w", err)
	}
	t.info.Model = "Unigram"
	t.setGeneral(&general{piece: func(out []uint32, piece string, sc *scratch) ([]uint32, error) {
		return model.Append(sc.ctx, out, piece)
	}}, nil)
	return nil
}

// setWholeText has the normaliser go over the whole text and write blanks as the
// pieces have them. The user's pieces are passed over, and not matched before that.
func (t *Tokenizer) setWholeText(m *spModel) error {
	n, err := m.normalizer()
	if err != nil {
		return err
	}
	if m.escapeBlanks {
		n.mark = blankMark
	}
	n.user = m.userMatcher()
	t.norm = normalizers{n}
	t.info.Split = "steps"
	return nil
}

// userMatcher finds the user's pieces; nil if there are none.
func (m *spModel) userMatcher() *matcher {
	var list []Added
	for id, p := range m.pieces {
		if p.kind == typeUserDefined {
			list = append(list, Added{ID: uint32(id), Content: string(p.text)})
		}
	}
	if list == nil {
		return nil
	}
	return newMatcher(list)
}

// unknown returns the entry for what is in no piece, and the entries of its bytes if
// it becomes those.
func (m *spModel) unknown() (id uint32, bytes []uint32) {
	if m.byteFallback {
		bytes = make([]uint32, 256)
	}
	for i, p := range m.pieces {
		switch p.kind {
		case typeUnknown:
			id = uint32(i)
		case typeByte:
			bytes[m.byteOf[i]] = uint32(i)
		}
	}
	return id, bytes
}
