package native

import (
	"fmt"
)

// LoadSentencePiece reads a tokenizer.model. With specials a text gets the model's
// bos_id in front, as the Llama and Mistral code does.
func LoadSentencePiece(b []byte) (*Tokenizer, error) {
	t, err := loadSentencePiece(b)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.model: %w", err)
	}
	return t, nil
}

func loadSentencePiece(b []byte) (*Tokenizer, error) {
	if len(b) > MaxFile {
		return nil, fmt.Errorf("%d bytes are more than %d", len(b), MaxFile)
	}
	m := spModel{modelType: modelUnigram, bos: 1, dummyPrefix: true, removeExtra: true, escapeBlanks: true}
	if err := m.read(b); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	t := &Tokenizer{info: Info{Format: "tokenizer.model", SHA256: hash(b), Tokens: len(m.pieces)}}
	t.pieces.of = func(id uint32) []byte {
		if int(id) >= len(m.pieces) {
			return nil
		}
		return m.pieces[id].text
	}
	if bos := int32(m.bos); bos >= 0 { // -1: the model has none
		t.surround.before = []uint32{uint32(bos)}
	}
	switch m.modelType {
	case modelUnigram:
		return t, t.useSPUnigram(&m)
	case modelBPE:
		return t, t.useSPBPE(&m)
	}
	return t, t.useSPLookup(&m)
}
