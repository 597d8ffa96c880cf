package native

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/eppctl/eppctl/internal/core/tokenizer/bpe"
	"github.com/eppctl/eppctl/internal/core/tokenizer/split"
)

// LoadSentencePiece reads a tokenizer.model of type BPE. With specials a text gets
// the model's bos_id in front, as the Llama and Mistral code does.
func LoadSentencePiece(b []byte) (*Tokenizer, error) {
	t, err := loadSentencePiece(b)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.model: %w", err)
	}
	return t, nil
}

// Types of a piece (sentencepiece_model.proto).
const (
	typeNormal = 1 + iota
	typeUnknown
	typeControl
	typeUserDefined
	typeUnused
	typeByte
)

type spPiece struct {
	text  []byte
	score float32
	kind  uint64
}

// spModel is what the file says, with the defaults of the format.
type spModel struct {
	pieces         []spPiece
	modelType      uint64
	byteFallback   bool
	suffix         bool
	bos            uint64
	charsMap       []byte
	dummyPrefix    bool
	removeExtra    bool
	escapeBlanks   bool
	normalizerRule string
}

func loadSentencePiece(b []byte) (*Tokenizer, error) {
	if len(b) > MaxFile {
		return nil, fmt.Errorf("%d bytes are more than %d", len(b), MaxFile)
	}
	m := spModel{modelType: 1, bos: 1, dummyPrefix: true, removeExtra: true, escapeBlanks: true}
	if err := m.read(b); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	spec, added, err := m.spec()
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{info: Info{Format: "tokenizer.model", SHA256: hash(b), Model: "BPE", Split: "blanks", Tokens: len(m.pieces)}}
	t.pieces.of = func(id uint32) []byte {
		if int(id) >= len(m.pieces) {
			return nil
		}
		return m.pieces[id].text
	}
	if bos := int32(m.bos); bos >= 0 { // -1: the model has none
		t.surround.before = []uint32{uint32(bos)}
	}
	p := never
	if m.changesText() {
		err = t.setNormalizer(added, &m)
	} else {
		if m.dummyPrefix {
			p = firstOnly
		}
		err = t.setUserDefined(added, &m)
	}
	if err != nil {
		return nil, err
	}
	model, err := bpe.New(spec)
	if err != nil {
		return nil, err
	}
	t.info.Tables = true
	t.encoder = &spaced{model, &split.BeforeSpaces{Keep: bpe.InnerBlanks(spec.Vocab)}, p, !m.escapeBlanks}
	t.scratches = newPool(model)
	t.setCuts()
	return t, nil
}

// changesText tells that the model's normaliser does more than put a blank in front.
func (m *spModel) changesText() bool { return m.removeExtra || len(m.charsMap) > 0 }

// setNormalizer has the text changed as a whole. The user's pieces are passed over, and
// then matched in what has become of it.
func (t *Tokenizer) setNormalizer(added []Added, m *spModel) error {
	n := &spNormalizer{dummyPrefix: m.dummyPrefix, removeExtra: m.removeExtra, ends: " "}
	if m.escapeBlanks {
		n.ends += blankMark
	}
	if len(m.charsMap) > 0 {
		var err error
		if n.charsMap, err = readCharsMap(m.charsMap); err != nil {
			return fmt.Errorf("normalizer %q: %w", m.normalizerRule, err)
		}
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

func (m *spModel) check() error {
	switch {
	case m.modelType != 2:
		return fmt.Errorf("model_type %d: %w", m.modelType, ErrUnsupported)
	case m.suffix:
		return fmt.Errorf("treat_whitespace_as_suffix: %w", ErrUnsupported)
	case len(m.pieces) == 0:
		return errors.New("no pieces")
	case int(int32(m.bos)) >= len(m.pieces):
		return fmt.Errorf("bos_id %d is no piece", int32(m.bos))
	}
	bytes := 0
	for _, p := range m.pieces {
		if p.kind == typeByte {
			bytes++
		}
	}
	if m.byteFallback != (bytes == 256) || bytes != 0 && bytes != 256 { // the library refuses these too
		return fmt.Errorf("byte_fallback %v with %d byte pieces", m.byteFallback, bytes)
	}
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
			var b byte
			if _, err := fmt.Sscanf(string(p.text), "<0x%02X>", &b); err != nil {
				return nil, nil, fmt.Errorf("byte piece %d is not <0x..>", id)
			}
			spec.Bytes[b] = uint32(id)
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

// read walks over the fields of the protocol buffer.
func (m *spModel) read(b []byte) error {
	return fields(b, func(n protowire.Number, v uint64, sub []byte) error {
		switch n {
		case 1:
			p := spPiece{kind: typeNormal}
			if err := p.read(sub); err != nil {
				return err
			}
			m.pieces = append(m.pieces, p)
			if len(m.pieces) > bpe.MaxID {
				return errors.New("too many pieces")
			}
		case 2:
			return m.readTrainer(sub)
		case 3:
			return m.readNormalizer(sub)
		}
		return nil
	})
}

func (p *spPiece) read(b []byte) error {
	return fields(b, func(n protowire.Number, v uint64, sub []byte) error {
		switch n {
		case 1:
			p.text = sub
		case 2:
			p.score = math.Float32frombits(uint32(v))
		case 3:
			p.kind = v
		}
		return nil
	})
}

func (m *spModel) readTrainer(b []byte) error {
	return fields(b, func(n protowire.Number, v uint64, _ []byte) error {
		switch n {
		case 3:
			m.modelType = v
		case 24:
			m.suffix = v != 0
		case 35:
			m.byteFallback = v != 0
		case 41:
			m.bos = v
		}
		return nil
	})
}

func (m *spModel) readNormalizer(b []byte) error {
	return fields(b, func(n protowire.Number, v uint64, sub []byte) error {
		switch n {
		case 1:
			m.normalizerRule = string(sub)
		case 2:
			m.charsMap = sub
		case 3:
			m.dummyPrefix = v != 0
		case 4:
			m.removeExtra = v != 0
		case 5:
			m.escapeBlanks = v != 0
		}
		return nil
	})
}

// fields calls f for each field of a message, with a number or with bytes.
func fields(b []byte, f func(n protowire.Number, v uint64, sub []byte) error) error {
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errors.New("not a protocol buffer")
		}
		b = b[n:]
		var v uint64
		var sub []byte
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var w uint32
			w, n = protowire.ConsumeFixed32(b)
			v = uint64(w)
		case protowire.Fixed64Type:
			v, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			sub, n = protowire.ConsumeBytes(b)
		default:
			n = -1
		}
		if n < 0 {
			return errors.New("not a protocol buffer")
		}
		b = b[n:]
		if err := f(num, v, sub); err != nil {
			return err
		}
	}
	return nil
}
