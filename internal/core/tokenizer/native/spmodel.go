package native

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/eppctl/eppctl/internal/core/tokenizer/bpe"
)

// Types of a model (sentencepiece_model.proto).
const (
	modelUnigram = 1 + iota
	modelBPE
	modelWord
	modelChar
)

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

// reserved pieces are those that the library keeps apart from those of text.
func (p spPiece) reserved() bool {
	return p.kind == typeUnknown || p.kind == typeControl || p.kind == typeByte
}

// spModel is what the file says, with the defaults of the format.
type spModel struct {
	pieces         []spPiece
	byteOf         map[int]byte // of the pieces of a byte
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
func (m *spModel) check() error {
	switch {
	case m.modelType < modelUnigram || m.modelType > modelChar:
		return fmt.Errorf("model_type %d: %w", m.modelType, ErrUnsupported)
	case m.suffix && m.modelType == modelBPE:
		return fmt.Errorf("treat_whitespace_as_suffix: %w", ErrUnsupported)
	case len(m.pieces) == 0:
		return errors.New("no pieces")
	case int(int32(m.bos)) >= len(m.pieces):
		return fmt.Errorf("bos_id %d is no piece", int32(m.bos))
	}
	if err := m.checkPieces(); err != nil {
		return err
	}
	if m.modelType == modelBPE && !m.byteFallback {
		return fmt.Errorf("model of type BPE without byte_fallback: %w", ErrUnsupported)
	}
	return nil
}

// checkPieces refuses what the library refuses too.
func (m *spModel) checkPieces() error {
	m.byteOf = map[int]byte{}
	unknown, seen := 0, map[bool]map[string]bool{false: {}, true: {}}
	for id, p := range m.pieces {
		text := string(p.text)
		switch {
		case p.kind < typeNormal || p.kind > typeByte:
			return fmt.Errorf("piece %d of type %d: %w", id, p.kind, ErrUnsupported)
		case text == "":
			return fmt.Errorf("piece %d is empty", id)
		case strings.Contains(text, "\x00"): // it ends the piece in some of its tables only
			return fmt.Errorf("piece %d with a zero byte: %w", id, ErrUnsupported)
		case seen[p.reserved()][text]:
			return fmt.Errorf("piece %d, %q, is given twice", id, text)
		}
		seen[p.reserved()][text] = true
		switch p.kind {
		case typeUnknown:
			unknown++
		case typeByte:
			var b byte
			if _, err := fmt.Sscanf(text, "<0x%02X>", &b); err != nil || text != fmt.Sprintf("<0x%02X>", b) {
				return fmt.Errorf("byte piece %d is not <0x..>", id)
			}
			m.byteOf[id] = b
		}
	}
	if unknown != 1 {
		return fmt.Errorf("%d pieces for what is unknown", unknown)
	}
	if bytes := len(m.byteOf); m.byteFallback != (bytes == 256) || bytes != 0 && bytes != 256 {
		return fmt.Errorf("byte_fallback %v with %d byte pieces", m.byteFallback, bytes)
	}
	return nil
}
