package native

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/tokenizer/bpe"
	"github.com/eppctl/eppctl/internal/core/tokenizer/split"
)

// useSPBPE is for a model of type BPE.
func (t *Tokenizer) useSPBPE(m *spModel) error {
	spec, added, err := m.spec()
	if err != nil {
		return err
	}
	p := never
	if m.changesText() {
		err = t.setNormalizer(added, m)
	} else {
		if m.dummyPrefix {
			p = firstOnly
		}
		err = t.setUserDefined(added, m)
	}
	if err != nil {
		return err
	}
	model, err := bpe.New(spec)
	if err != nil {
		return err
	}
	t.info.Model, t.info.Split, t.info.Tables = "BPE", "blanks", true
	t.encoder = &spaced{model, &split.BeforeSpaces{Keep: bpe.InnerBlanks(spec.Vocab)}, p, !m.escapeBlanks}
	t.scratches = newPool(model)
	t.setCuts()
	return nil
}

// changesText tells that the model's normaliser does more than put a blank in front.
func (m *spModel) changesText() bool { return m.removeExtra || len(m.charsMap) > 0 }

// setNormalizer has the text changed as a whole. The user's pieces are passed over, and
// then matched in what has become of it.
func (t *Tokenizer) setNormalizer(added []Added, m *spModel) error {
	n, err := m.normalizer()
	if err != nil {
		return err
	}
	if err := t.setUserDefined(added, m); err != nil {
		return err
	}
	t.raw, t.normed, n.user = nil, t.raw, t.raw
	t.blankAlone = false
	t.norm = normalizers{n}
	return nil
}

// setUserDefined has the user's pieces matched in the text. One that holds a blank
// would have to be matched with the prefix, after the turn of U+2581 to a blank.
func (t *Tokenizer) setUserDefined(added []Added, m *spModel) error {
	if len(added) == 0 {
		return nil
	}
	for _, a := range added {
		if strings.Contains(a.Content, " ") {
			return fmt.Errorf("user-defined piece %d with a blank: %w", a.ID, ErrUnsupported)
		}
	}
	t.raw = newMatcher(added)
	t.blankAlone = m.dummyPrefix
	t.info.Added = len(added)
	return nil
}

// spec turns pieces to entries: the best score merges first. Control, byte and
// unknown pieces are no text.
func (m *spModel) spec() (*bpe.Spec, []Added, error) {
	spec := &bpe.Spec{Vocab: bpe.NewVocab(len(m.pieces)), Chars: true, Unknown: bpe.None}
	for i := range spec.Bytes {
		spec.Bytes[i] = bpe.None
	}
	var added []Added
	for id, p := range m.pieces {
		text := p.text
		if m.escapeBlanks {
			text = []byte(strings.ReplaceAll(string(p.text), blankMark, " "))
		}
		switch p.kind {
		case typeNormal:
			if m.escapeBlanks && strings.Contains(string(p.text), " ") {
				text = nil // no text has a blank of its own
			} else if len([]rune(string(text))) > 1 {
				spec.Ranked = append(spec.Ranked, uint32(id))
			}
		case typeByte:
			spec.Bytes[m.byteOf[id]] = uint32(id)
			text = nil
		case typeUserDefined:
			added = append(added, Added{ID: uint32(id), Content: string(text)})
			text = nil
		case typeUnknown:
			spec.Unknown = uint32(id)
			text = nil
		case typeControl:
			text = nil
		default:
			return nil, nil, fmt.Errorf("piece %d of type %d: %w", id, p.kind, ErrUnsupported)
		}
		if err := spec.Vocab.Add(uint32(id), text); err != nil {
			return nil, nil, err
		}
	}
	spec.Vocab.Seal()
	score := func(id uint32) float32 { return m.pieces[id].score }
	slices.SortStableFunc(spec.Ranked, func(a, b uint32) int { return cmp.Compare(score(b), score(a)) })
	spec.Ties = make([]bool, len(spec.Ranked))
	for i := 1; i < len(spec.Ranked); i++ {
		spec.Ties[i] = score(spec.Ranked[i-1]) == score(spec.Ranked[i])
	}
	return spec, added, nil
}
