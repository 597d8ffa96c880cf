package native

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/tokenizer/bpe"
	"github.com/eppctl/eppctl/internal/core/tokenizer/split"
	"github.com/eppctl/eppctl/internal/core/tokenizer/unigram"
)

// MaxFile caps a tokenizer file, in bytes. The largest seen has 34 MB.
const MaxFile = 256 << 20

// LoadHuggingFace reads a tokenizer.json. Its truncation and padding have no effect, as
// in engines: transformers turns both off before each call that does not ask for them
// (set_truncation_and_padding, 5.19.0), where the bare library would follow the file.
func LoadHuggingFace(b []byte) (*Tokenizer, error) {
	t, err := loadHuggingFace(b)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	return t, nil
}

// file is a tokenizer.json as read.
type file struct {
	added           []Added
	norm, pre, post json.RawMessage
	split           *preTokenizer // pre as read, before the model
	model           modelFile
}

func loadHuggingFace(b []byte) (*Tokenizer, error) {
	if len(b) > MaxFile {
		return nil, fmt.Errorf("%d bytes are more than %d", len(b), MaxFile)
	}
	var f file
	if err := f.read(b); err != nil {
		return nil, err
	}
	t := &Tokenizer{info: Info{Format: "tokenizer.json", SHA256: hash(b), Model: f.model.kind}}
	var err error
	if t.norm, err = parseNormalizer(f.norm); err != nil {
		return nil, err
	}
	if t.surround, err = parsePostProcessor(f.post); err != nil {
		return nil, err
	}
	if err := f.checkIDs(); err != nil {
		return nil, err
	}
	if err := t.setAdded(f.added); err != nil {
		return nil, err
	}
	switch f.model.kind {
	case "BPE":
		err = t.useBPE(&f.model, f.split)
	case "Unigram":
		err = t.useUnigram(&f.model, f.split)
	case "WordPiece", "WordLevel":
		err = t.useWords(&f.model, f.split)
	default:
		err = fmt.Errorf("model %q: %w", f.model.kind, ErrUnsupported)
	}
	if err != nil {
		return nil, err
	}
	t.setCuts()
	return t, nil
}

// read reads the model when it is known how its entries are written, which the
// pre-tokenizer says: that stands before it in all files seen; else after the rest.
func (f *file) read(b []byte) error {
	s := &scanner{b: b}
	modelAt := -1
	readModel := func() {
		var err error
		if f.split, err = parsePreTokenizer(f.pre); err != nil {
			s.err = cmp.Or(s.err, err)
			return
		}
		f.model.byteEntries = f.split.byteLevel
		f.model.read(s)
	}
	s.members(func(name string) {
		switch name {
		case "added_tokens":
			s.decode(&f.added)
		case "normalizer":
			f.norm = s.value()
		case "pre_tokenizer":
			if f.pre != nil {
				s.fail("second pre_tokenizer")
			}
			f.pre = s.value()
		case "post_processor":
			f.post = s.value()
		case "model":
			if modelAt >= 0 {
				s.fail("second model")
			}
			s.peek()
			modelAt = s.i
			if f.pre != nil {
				readModel()
			} else {
				s.value()
			}
		case "version", "truncation", "padding", "decoder":
			s.value()
		default:
			if s.err == nil {
				s.err = fmt.Errorf("member %q: %w", name, ErrUnsupported)
			}
		}
	})
	s.end()
	if s.err != nil {
		return s.err
	}
	if modelAt < 0 {
		return errors.New("no model")
	}
	for _, a := range f.added {
		if a.ID > bpe.MaxID {
			return fmt.Errorf("added token of id %d is beyond the limits", a.ID)
		}
	}
	if f.model.kind == "" {
		s.i = modelAt
		readModel()
	}
	return s.err
}

// checkIDs refuses added tokens whose id is not the one that the engines give them:
// that of the entry of the same text, or else the next one free. They do not look at
// the id in the file.
func (f *file) checkIDs() error {
	size := len(f.model.pieces)
	if f.model.vocab != nil {
		size = f.model.size
	}
	next := uint32(size)
	for _, a := range f.added {
		if a.Content == "" {
			continue
		}
		id, ok := f.model.idOf(a.Content)
		if !ok {
			id = next
		}
		if id != a.ID {
			return fmt.Errorf("added token %q has id %d, and engines give it %d: %w", a.Content, a.ID, id, ErrUnsupported)
		}
		next = max(next, id+1)
	}
	return nil
}

var errNoVocabulary = errors.New("model without a vocabulary")

// useBPE chooses the encoder.
func (t *Tokenizer) useBPE(m *modelFile, pre *preTokenizer) error {
	switch {
	case m.vocab == nil:
		return errNoVocabulary
	case m.prefix != "":
		return fmt.Errorf("model member continuing_subword_prefix: %w", ErrUnsupported)
	case m.maxChars != nil:
		return fmt.Errorf("model member max_input_chars_per_word: %w", ErrUnsupported)
	}
	t.info.Tokens = m.vocab.Count()
	t.pieces.of = m.vocab.Bytes
	spec := &bpe.Spec{
		Vocab: m.vocab, Merges: m.merges, IgnoreMerges: m.ignore,
		Chars: !pre.byteLevel, Unknown: bpe.None, FuseUnknown: m.fuseUnk,
	}
	for b := range spec.Bytes {
		spec.Bytes[b] = bpe.None
		if id, ok := m.byteToken(byte(b)); ok {
			spec.Bytes[b] = id
		}
	}
	if m.unkToken != nil {
		written := []byte(*m.unkToken)
		if m.byteEntries {
			written, _ = appendBytes(nil, written)
		}
		id, ok := m.vocab.Find(written)
		if !ok {
			return fmt.Errorf("unk_token %q is not in the vocabulary", *m.unkToken)
		}
		spec.Unknown = id
	}
	if pre.byteLevel {
		// The characters that ByteLevel writes would fall back to bytes of their own.
		if b := slices.Index(spec.Bytes[:], bpe.None); m.fallback && b >= 0 {
			return fmt.Errorf("byte_fallback with ByteLevel and without an entry for byte %#02x: %w", b, ErrUnsupported)
		}
		return t.useBytes(spec, pre)
	}
	return t.useChars(spec, pre)
}

// useBytes is for pieces that start as bytes.
func (t *Tokenizer) useBytes(spec *bpe.Spec, pre *preTokenizer) error {
	sp := split.ForPatterns(pre.patterns...)
	if pre.patterns == nil {
		sp = nil
	}
	switch {
	case sp != nil:
		t.info.Split = sp.Name
	case pre.regex:
		t.info.Split = "regex"
	default:
		t.info.Split = "steps"
	}
	model, err := bpe.New(spec)
	if errors.Is(err, bpe.ErrPlain) {
		t.info.Why = err.Error()
		t.useGeneral(pre.steps, spec, nil)
		return nil
	}
	if err != nil {
		return err
	}
	t.info.Tables = true
	if sp == nil {
		t.useGeneral(pre.steps, spec, model)
		return nil
	}
	t.encoder = &tables{model, sp}
	t.scratches = newPool(model)
	return nil
}

func (t *Tokenizer) useGeneral(steps []step, spec *bpe.Spec, model *bpe.Model) {
	g := &general{steps: steps}
	if model != nil {
		g.piece = func(out []uint32, piece string, sc *scratch) ([]uint32, error) {
			return model.AppendPiece(out, piece, sc.bpe), sc.bpe.Err()
		}
	} else {
		p := bpe.NewPlain(spec)
		g.piece = func(out []uint32, piece string, sc *scratch) ([]uint32, error) {
			return p.AppendPiece(sc.ctx, out, piece)
		}
	}
	t.setGeneral(g, model)
}

// setGeneral sets an encoder that goes step by step.
func (t *Tokenizer) setGeneral(g *general, model *bpe.Model) {
	t.encoder = g
	t.scratches = newPool(model)
	t.heads = slices.ContainsFunc(g.steps, func(s step) bool {
		m, ok := s.(metaspace)
		return ok && m.scheme == "first"
	})
	t.nfc = t.nfc && !t.heads
}

// useChars is for pieces that start as characters. If the file only turns blanks to
// marks and puts one in front, the text is cut before blanks.
func (t *Tokenizer) useChars(spec *bpe.Spec, pre *preTokenizer) error {
	t.info.Split = "steps"
	if pre.regex {
		t.info.Split = "regex"
	}
	prefix, each, ok := t.spacing(pre)
	if _, known := spec.Vocab.Find([]byte(blankMark)); !ok || !known { // unknown, it would become the bytes of a blank
		t.info.Why = "blanks are treated in an unusual way"
		t.useGeneral(pre.steps, spec, nil)
		return nil
	}
	turned, err := turnBlanks(spec)
	if err != nil {
		return err
	}
	model, err := bpe.New(turned)
	if errors.Is(err, bpe.ErrPlain) {
		t.info.Why = err.Error()
		t.useGeneral(pre.steps, spec, nil)
		return nil
	}
	if err != nil {
		return err
	}
	t.info.Split, t.info.Tables = "blanks", true
	t.norm = nil // the encoder does it
	t.encoder = &spaced{model, &split.BeforeSpaces{Each: each, Keep: bpe.InnerBlanks(turned.Vocab)}, prefix, false}
	t.scratches = newPool(model)
	return nil
}

// spacing recognises the ways in which SentencePiece's blanks are written in a
// tokenizer.json. Added tokens of the normalised text would need the normaliser.
func (t *Tokenizer) spacing(pre *preTokenizer) (p prefix, each, ok bool) {
	norm := t.norm
	if t.normed != nil {
		return 0, false, false
	}
	if len(norm) > 0 && norm[0] == normalizer(prepend(blankMark)) {
		p, norm = always, norm[1:]
	}
	if len(norm) == 1 && norm[0] == normalizer(replace{" ", blankMark}) {
		switch {
		case len(pre.steps) == 0:
			return p, false, true
		case len(pre.steps) == 1:
			// A Split on the blank, of which there is none left.
			s, isSplit := pre.steps[0].(*splitStep)
			return p, false, isSplit && s.re == nil && s.literal == " " && !s.invert
		}
		return 0, false, false
	}
	if len(norm) == 0 && p == never && len(pre.steps) == 1 {
		if m, isMeta := pre.steps[0].(metaspace); isMeta && m.mark == blankMark {
			return map[string]prefix{"always": unlessBlank, "first": firstIfBlank, "never": never}[m.scheme], m.split, true
		}
	}
	return 0, false, false
}

// turnBlanks writes the mark of blanks in a vocabulary as a blank, which no text that
// the model sees has. Entries with a blank of their own are out of reach.
func turnBlanks(s *bpe.Spec) (*bpe.Spec, error) {
	v := bpe.NewVocab(s.Vocab.Len())
	gone := make([]bool, s.Vocab.Len())
	for id := range uint32(s.Vocab.Len()) {
		text := string(s.Vocab.Bytes(id))
		if gone[id] = strings.Contains(text, " "); gone[id] {
			text = ""
		}
		if err := v.Add(id, []byte(strings.ReplaceAll(text, blankMark, " "))); err != nil {
			return nil, err
		}
	}
	v.Seal()
	out := *s
	out.Vocab = v
	if slices.Contains(gone, true) {
		out.Merges = slices.DeleteFunc(slices.Clone(s.Merges), func(m bpe.Merge) bool {
			return gone[m.Left] || gone[m.Right] || gone[m.Product]
		})
	}
	return &out, nil
}

func (t *Tokenizer) useUnigram(m *modelFile, pre *preTokenizer) error {
	if pre.byteLevel {
		return fmt.Errorf("model Unigram with ByteLevel: %w", ErrUnsupported)
	}
	model, err := unigram.New(m.pieces, m.unkID, m.fallback)
	if err != nil {
		return fmt.Errorf("model Unigram: %w", err)
	}
	t.info.Tokens = len(m.pieces)
	t.pieces.of = func(id uint32) []byte {
		if int(id) >= len(m.pieces) {
			return nil
		}
		return []byte(m.pieces[id].Text)
	}
	t.info.Split = "steps"
	if pre.regex {
		t.info.Split = "regex"
	}
	t.setGeneral(&general{pre.steps, func(out []uint32, piece string, sc *scratch) ([]uint32, error) {
		return model.Append(sc.ctx, out, piece)
	}}, nil)
	return nil
}
