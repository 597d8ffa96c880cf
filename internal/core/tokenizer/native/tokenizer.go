// Package native turns text into the token ids that an engine will compute, from the
// tokenizer files the engine itself reads. It takes bytes and opens nothing. What a
// file asks for and this package does not know is an error that names it.
//
// A text goes through: added tokens of the raw text, normaliser, added tokens of the
// normalised text, pre-tokenizer, model, post-processor. For the vocabularies of the
// common models the middle is one loop over tables (package bpe); every other goes
// through it step by step.
package native

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/eppctl/eppctl/internal/core/tokenizer/bpe"
	"github.com/eppctl/eppctl/internal/core/tokenizer/split"
	"github.com/eppctl/eppctl/internal/core/tokenizer/unitab"
)

// Tokenizer encodes text. It is immutable; all methods may be called from any
// goroutine.
type Tokenizer struct {
	info      Info
	raw       *matcher // nil if there is none
	norm      normalizers
	nfc       bool // norm is NFC alone, which is done without a copy to keep
	heads     bool // the encoder asks for the head of what it is given (see passage)
	normed    *matcher
	encoder   encoder
	surround  surround
	scratches pool
	// blankAlone: a text that starts with an added token has its blank before it.
	blankAlone bool
	// inText tells where between two of its bytes a text may be cut; nil: nowhere.
	inText cutter
	pieces pieces
}

// Info is what an operator is told about a tokenizer.
type Info struct {
	Format string // "tokenizer.json", "tiktoken", "tekken.json", "tokenizer.model"
	SHA256 string // of the file
	Model  string // "BPE", "Unigram"
	Split  string // name of the hand-written splitter, "regex", or "steps"
	Tables bool   // the fast tables are used
	Why    string // why not
	Tokens int    // entries of the model
	Added  int    // added tokens
	Cuts   bool   // long texts may be cut between words (see Cache)
}

// Info describes the tokenizer.
func (t *Tokenizer) Info() Info { return t.info }

// MaxText is the longest text that is encoded, in bytes.
const MaxText = math.MaxInt32 / 2

// ErrLong is returned for a text of more than MaxText bytes.
var ErrLong = errors.New("text is too long to tokenize")

// encoder encodes normalised text between added tokens.
type encoder interface {
	encode(out []uint32, s string, p part, sc *scratch) ([]uint32, error)
}

// Encode returns the ids of a text, which must be valid UTF-8, as every string from a
// JSON body is. With special, what the post-processor adds is there too.
func (t *Tokenizer) Encode(text string, special bool) ([]uint32, error) {
	return t.EncodeContext(context.Background(), text, special)
}

// EncodeContext is Encode until ctx ends. It is looked at between pieces of text and
// inside long ones. A pattern that backtracks is given up within some 10 ms of ctx's
// deadline, and within a second of any other end.
func (t *Tokenizer) EncodeContext(ctx context.Context, text string, special bool) ([]uint32, error) {
	if len(text) > MaxText {
		return nil, ErrLong
	}
	sc := t.scratches.get(ctx)
	defer t.scratches.put(sc)
	out := sc.ids[:0]
	if special {
		out = append(out, t.surround.before...)
	}
	out, err := t.append(out, text, part{first: true}, sc)
	if err != nil {
		return nil, err
	}
	if special {
		out = append(out, t.surround.after...)
	}
	sc.keep(out)
	return append([]uint32(nil), out...), nil // exact in size and not cleared first
}

// part is where a text stands in the whole one.
type part struct {
	first  bool // at its start
	inside bool // behind a cut inside text
	head   int  // see passage; of what an encoder is given
}

// from is the place of what stands so many bytes behind the start of p.
func (p part) from(at int) part {
	if at == 0 {
		return p
	}
	return part{head: max(p.head-at, 0)}
}

// append appends the ids of a part of a text.
func (t *Tokenizer) append(out []uint32, text string, p part, sc *scratch) ([]uint32, error) {
	if t.raw == nil {
		if text == "" {
			return out, nil
		}
		return t.stretch(out, text, p, sc)
	}
	if t.raw.plain { // no closure in the usual case
		done := 0
		var err error
		for i := 0; i < len(text); {
			at, a := t.raw.next(text, i)
			if done < at {
				if out, err = t.stretch(out, text[done:at], p.from(done), sc); err != nil {
					return nil, err
				}
			}
			if a == nil {
				break
			}
			if at == 0 && p.first && t.blankAlone {
				if out, err = t.encoder.encode(out, "", part{first: true}, sc); err != nil {
					return nil, err
				}
			}
			out = append(out, a.ID)
			i = at + len(a.Content)
			done = i
		}
		return out, nil
	}
	return t.raw.cut(out, text, func(out []uint32, s string, from int) ([]uint32, error) {
		return t.stretch(out, s, p.from(from), sc)
	})
}

// stretch encodes text without raw added tokens.
func (t *Tokenizer) stretch(out []uint32, s string, p part, sc *scratch) (_ []uint32, err error) {
	if err := sc.ctx.Err(); err != nil {
		return nil, err
	}
	if t.nfc {
		if !unitab.IsNFC(s) {
			sc.text = unitab.NFC.Append(sc.text[:0], s)
			s = unsafe.String(&sc.text[0], len(sc.text))
		}
	} else if len(t.norm) > 0 || t.heads {
		x := passage{s: s}
		if t.heads && p.first {
			x = start(s)
		}
		if x, err = t.norm.normalize(sc.ctx, x); err != nil {
			return nil, err
		}
		if s, p.head = x.s, x.head; s == "" {
			return out, nil
		}
	}
	if t.normed == nil {
		return t.encoder.encode(out, s, p, sc)
	}
	return t.normed.cut(out, s, func(out []uint32, s string, from int) ([]uint32, error) {
		return t.encoder.encode(out, s, p.from(from), sc)
	})
}

// setAdded sorts the added tokens by the text they are matched in.
func (t *Tokenizer) setAdded(list []Added) error {
	t.nfc = len(t.norm) == 1 && t.norm[0] == normalizer(form(unitab.NFC))
	var raw, normed []Added
	for _, a := range list {
		if a.Content == "" {
			continue
		}
		t.pieces.add(a.ID, a.Content)
		if !a.Normalized || len(t.norm) == 0 {
			raw = append(raw, a)
			continue
		}
		x, err := t.norm.normalize(context.Background(), passage{s: a.Content})
		if err != nil {
			return err
		}
		if x.s == "" { // Hugging Face finds it between all characters
			return fmt.Errorf("added token %q is nothing once normalised: %w", a.Content, ErrUnsupported)
		}
		a.Content = x.s
		normed = append(normed, a)
	}
	if len(t.norm) == 0 && len(normed) == 0 && slices.ContainsFunc(raw, func(a Added) bool { return a.Normalized }) {
		raw, normed = apart(raw)
	}
	if len(raw) > 0 {
		t.raw = newMatcher(raw)
	}
	if len(normed) > 0 {
		t.normed = newMatcher(normed)
	}
	t.info.Added = len(list)
	return nil
}

// apart keeps tokens of the normalised text, which is the raw one, behind the others
// unless that makes no difference: then one pass finds both. It does where two can
// share text, and where one looks at what is beside it: a token of the raw text is the
// end of the text for those of the normalised one.
func apart(all []Added) (raw, normed []Added) {
	for _, a := range all {
		if a.Normalized {
			normed = append(normed, a)
		} else {
			raw = append(raw, a)
		}
	}
	if len(raw) > 0 && slices.ContainsFunc(all, Added.looksAround) {
		return raw, normed
	}
	for _, a := range raw {
		for _, b := range normed {
			if overlap(a.Content, b.Content) {
				return raw, normed
			}
		}
	}
	return all, nil
}

// overlap reports whether two tokens can share text.
func overlap(a, b string) bool {
	if strings.Contains(a, b) || strings.Contains(b, a) {
		return true
	}
	for n := 1; n < min(len(a), len(b)); n++ {
		if a[len(a)-n:] == b[:n] || b[len(b)-n:] == a[:n] {
			return true
		}
	}
	return false
}

func hash(b []byte) string {
	h := SHA256(b)
	return hex.EncodeToString(h[:])
}

// tables is the fast way: a hand-written splitter and the tables.
type tables struct {
	model *bpe.Model
	split *split.Splitter
}

func (e *tables) encode(out []uint32, s string, _ part, sc *scratch) ([]uint32, error) {
	return e.model.AppendText(out, s, e.split, sc.bpe), sc.bpe.Err()
}

// spaced is the fast way for vocabularies that write a blank as U+2581 and put one
// before the text. Here the vocabulary is turned round, the mark is a blank.
type spaced struct {
	model  *bpe.Model
	split  *split.BeforeSpaces
	prefix prefix
	marks  bool // the mark is a character like any other
}

// prefix says when a blank is put before a stretch.
type prefix uint8

const (
	never        prefix = iota
	always              // Prepend
	unlessBlank         // Metaspace, always
	firstIfBlank        // Metaspace, first: only at the start of the text, unless it has one
	firstOnly           // SentencePiece: at the start of the text
)

const blankMark = "\u2581"

func (e *spaced) encode(out []uint32, s string, p part, sc *scratch) ([]uint32, error) {
	if !e.marks && strings.Contains(s, blankMark) {
		s = strings.ReplaceAll(s, blankMark, " ")
	}
	if e.wantsBlank(s, p.first) && !p.inside {
		return e.model.AppendPrefixed(out, " ", s, e.split, sc.bpe), sc.bpe.Err()
	}
	return e.model.AppendText(out, s, e.split, sc.bpe), sc.bpe.Err()
}

func (e *spaced) wantsBlank(s string, first bool) bool {
	switch e.prefix {
	case always:
		return true
	case unlessBlank:
		return !strings.HasPrefix(s, " ")
	case firstIfBlank:
		return first && !strings.HasPrefix(s, " ")
	case firstOnly:
		return first
	}
	return false
}
