package native

import (
	"fmt"
	"slices"

	"github.com/eppctl/eppctl/internal/core/tokenizer/bpe"
	"github.com/eppctl/eppctl/internal/core/tokenizer/unigram"
)

// modelFile is its model.
type modelFile struct {
	kind        string
	vocab       *bpe.Vocab
	size        int               // entries, those that no text becomes included
	unwritable  map[string]uint32 // the latter, which may be added tokens
	merges      []bpe.Merge
	mergesAt    int // where they stand, if before the vocabulary
	unkToken    *string
	fuseUnk     bool
	fallback    bool
	ignore      bool
	unkID       *uint32
	prefix      string // of entries inside words
	maxChars    *int   // of a word
	pieces      []unigram.Piece
	byteEntries bool // entries are written in the byte alphabet and read as bytes
}

func (m *modelFile) read(s *scanner) {
	m.kind = "BPE" // files of before 2020 do not say
	s.members(func(name string) {
		var text *string
		var dropout *float64
		switch name {
		case "type":
			s.decode(&m.kind)
		case "dropout":
			if s.decode(&dropout); dropout != nil && *dropout != 0 {
				s.err = fmt.Errorf("model member dropout: %w", ErrUnsupported)
			}
		case "continuing_subword_prefix":
			if s.decode(&text); text != nil {
				m.prefix = *text
			}
		case "max_input_chars_per_word":
			s.decode(&m.maxChars)
		case "end_of_word_suffix":
			if s.decode(&text); text != nil && *text != "" {
				s.err = fmt.Errorf("model member %s: %w", name, ErrUnsupported)
			}
		case "unk_token":
			s.decode(&m.unkToken)
		case "unk_id":
			s.decode(&m.unkID)
		case "fuse_unk":
			s.decode(&m.fuseUnk)
		case "byte_fallback":
			s.decode(&m.fallback)
		case "ignore_merges":
			s.decode(&m.ignore)
		case "vocab":
			if m.vocab != nil || m.pieces != nil {
				s.fail("second vocab") // the merges that are read are those of the first
				return
			}
			if s.peek() == '[' {
				m.readPieces(s)
			} else {
				m.readVocab(s)
			}
		case "merges":
			s.peek()
			if m.mergesAt = s.i; m.vocab == nil {
				s.value()
			} else {
				m.readMerges(s)
			}
		default:
			if s.err == nil {
				s.err = fmt.Errorf("model member %q: %w", name, ErrUnsupported)
			}
		}
	})
	if m.merges == nil && m.mergesAt > 0 && m.vocab != nil && s.err == nil {
		end := s.i
		s.i = m.mergesAt
		m.readMerges(s)
		s.i = end // behind the model, where the rest of the file goes on
	}
}

// idOf finds an entry as it is written.
func (m *modelFile) idOf(text string) (uint32, bool) {
	if m.vocab == nil {
		i := slices.IndexFunc(m.pieces, func(p unigram.Piece) bool { return p.Text == text })
		return uint32(max(i, 0)), i >= 0
	}
	if id, ok := m.unwritable[text]; ok {
		return id, true
	}
	b, ok := m.entry(nil, []byte(text))
	if !ok {
		return 0, false
	}
	return m.vocab.Find(b)
}

// entry is the text of an entry, in which no blank is anything but the mark.
func (m *modelFile) entry(dst, written []byte) ([]byte, bool) {
	if m.byteEntries {
		return appendBytes(dst, written)
	}
	return append(dst, written...), true
}

func (m *modelFile) readVocab(s *scanner) {
	m.vocab = bpe.NewVocab(1 << 17)
	m.unwritable = map[string]uint32{}
	var room []byte
	s.expect('{')
	if s.peek() == '}' {
		s.i++
		m.vocab.Seal()
		return
	}
	for s.err == nil {
		text := s.str(0)
		s.expect(':')
		id := s.number()
		var ok bool
		m.size++
		if room, ok = m.entry(room[:0], text); !ok {
			room = room[:0] // the id is taken
			m.unwritable[string(text)] = id
		}
		if s.err == nil {
			s.err = m.vocab.Add(id, room)
		}
		if !s.more('}') {
			break
		}
	}
	if s.err == nil {
		m.vocab.Seal()
	}
}

func (m *modelFile) readPieces(s *scanner) {
	s.elements(func() {
		var p unigram.Piece
		s.expect('[')
		p.Text = string(s.str(0))
		s.expect(',')
		s.decode(&p.Score)
		s.expect(']')
		m.pieces = append(m.pieces, p)
	})
}

func (m *modelFile) byteToken(b byte) (uint32, bool) {
	if m.byteEntries {
		return m.vocab.Find([]byte{b})
	}
	if !m.fallback {
		return 0, false
	}
	return m.vocab.Find(fmt.Appendf(nil, "<0x%02X>", b))
}
