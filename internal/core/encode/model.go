package encode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// Options are what a model's encoder is made of.
type Options struct {
	Tokenizer *native.Tokenizer
	// Chat renders the model's chats as Engine does; nil when they cannot be
	// rendered here, and then NoChat says why.
	Chat   *chat.Renderer
	NoChat error
	Engine chat.Engine // whose defaults hold for what a body does not say
	// Cache is how many bytes of text and ids of earlier prompts are kept; 0 = none.
	Cache int
	// Now is the engine's time in its zone, for templates that print the date; nil =
	// not known, and chats with such a template are refused.
	Now func() time.Time
	// Doubt says why the tokenizer may not be the engine's, SpecialsDoubt why what it
	// adds to a text may not; "" = no doubt.
	Doubt, SpecialsDoubt string
}

// Model gets the ids of a model's requests. All methods may be called from any
// goroutine.
type Model struct {
	o        Options
	cache    *native.Cache // nil = none
	standing atomic.Uint32
}

var _ tokenizer.Provider = (*Model)(nil)

// New returns the encoder of a model.
func New(o Options) *Model {
	m := &Model{o: o}
	if o.Cache > 0 {
		m.cache = native.NewCache(o.Tokenizer, o.Cache)
	}
	return m
}

// Errors of Encode, besides those of packages chat and native.
var (
	ErrShape    = errors.New("requests of this shape are not encoded here")
	ErrBody     = errors.New("the body is not a JSON object")
	ErrNoPrompt = errors.New("the body has no prompt that is a text or a list of texts")
	ErrNoChat   = errors.New("chats of this model are not rendered here")
	ErrNotText  = errors.New("the prompt is not Unicode")
)

// Encoding is a request in ids and what is known about them.
type Encoding struct {
	IDs     []uint32   // of several prompts the first
	Further [][]uint32 // the prompts behind it, in order
	// Cut is the first position whose content the ids do not determine, where IDs
	// end too; negative = they are the whole prompt.
	Cut int
	// Doubts say what keeps the ids from being surely the engine's.
	Doubts []string
	Reused int // bytes of text that were found in the cache
}

// Encode returns the ids of a request, at most tokenizer.MaxPrompts prompts. The
// error is a *chat.Rejected when the engine refuses the request too.
func (m *Model) Encode(ctx context.Context, t tokenizer.Text) (*Encoding, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e := &Encoding{Cut: -1}
	if m.o.Doubt != "" {
		e.Doubts = append(e.Doubts, m.o.Doubt)
	}
	err := ErrShape
	switch t.Shape {
	case tokenizer.Completion, tokenizer.Embedding:
		err = m.completion(ctx, e, t.Shape, t.Body)
	case tokenizer.Chat:
		err = m.chat(ctx, e, chat.Completions, t.Body)
	case tokenizer.Messages:
		err = m.chat(ctx, e, chat.Messages, t.Body)
	case tokenizer.Responses:
		err = m.chat(ctx, e, chat.Responses, t.Body)
	case tokenizer.EmbeddingChat:
		err = m.chat(ctx, e, chat.Embeddings, t.Body)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// MaxPrompt is the longest text of a request that is encoded, in bytes: a million tokens
// of eight bytes each. One word of that length takes 24 bytes of scratch for each of its
// own while it is merged, on each processor: 200 MB, where a body's limit alone would let
// it take 800, for ids that no deadline waits for.
const MaxPrompt = 8 << 20

// encode sets the ids of a text.
func (m *Model) encode(ctx context.Context, e *Encoding, text string, special bool) error {
	if len(text) > MaxPrompt {
		return fmt.Errorf("%w: %d bytes, at most %d", native.ErrLong, len(text), MaxPrompt)
	}
	if special {
		m.doubtSpecials(e)
	}
	ids, reused, err := m.EncodeText(ctx, text, special)
	e.IDs, e.Reused = ids, e.Reused+reused
	return err
}

// doubtSpecials is for what is put around a text.
func (m *Model) doubtSpecials(e *Encoding) {
	if m.o.SpecialsDoubt != "" && !slices.Contains(e.Doubts, m.o.SpecialsDoubt) {
		e.Doubts = append(e.Doubts, m.o.SpecialsDoubt)
	}
}

// encodeApart sets the ids of a text that the engine encodes in parts, which begin at its
// start and at these places. Nothing is put around it.
func (m *Model) encodeApart(ctx context.Context, e *Encoding, text string, at []int) error {
	if len(text) > MaxPrompt {
		return fmt.Errorf("%w: %d bytes, at most %d", native.ErrLong, len(text), MaxPrompt)
	}
	from := 0
	for _, to := range append(slices.Clip(at), len(text)) {
		ids, reused, err := m.EncodeText(ctx, text[from:to], false)
		if err != nil {
			return err
		}
		e.IDs, e.Reused, from = append(e.IDs, ids...), e.Reused+reused, to
	}
	return nil
}

// EncodeText returns the ids of a text, with what the post-processor adds or without.
func (m *Model) EncodeText(ctx context.Context, text string, special bool) (ids []uint32, reused int, err error) {
	if m.cache == nil {
		ids, err = m.o.Tokenizer.EncodeContext(ctx, text, special)
		return ids, 0, err
	}
	return m.cache.EncodeContext(ctx, text, special)
}

// Name implements tokenizer.Provider.
func (m *Model) Name() string { return "native" }

// Standing is what comparing a model's ids with an engine's has found.
type Standing uint32

// The standings.
const (
	Untested    Standing = iota
	Proven               // an engine makes the same
	ProvenTexts          // of texts; chats were not compared
	Doubted              // engines announce other ids than requests were routed by
	Refuted              // an engine makes others
)

// SetStanding tells what was found. Until a model is proven Tokenize claims nothing.
func (m *Model) SetStanding(s Standing) { m.standing.Store(uint32(s)) }

// Standing is what SetStanding was told last.
func (m *Model) Standing() Standing { return Standing(m.standing.Load()) }

// Tokenize implements tokenizer.Provider. Exact is claimed once the model is proven,
// and only for requests without doubts.
func (m *Model) Tokenize(ctx context.Context, t tokenizer.Text) (tokenizer.Result, error) {
	e, err := m.Encode(ctx, t)
	if err != nil {
		return tokenizer.Result{}, fmt.Errorf("native: %w", err)
	}
	r := tokenizer.Result{IDs: e.IDs, Further: e.Further, Status: tokenizer.Unverified, Cut: e.Cut, Doubtful: len(e.Doubts) > 0}
	if s := m.Standing(); !r.Doubtful && (s == Proven || s == ProvenTexts && !t.Shape.IsChat()) {
		r.Status = tokenizer.Exact
	}
	return r, nil
}

// Piece is what an id stands for, where that was kept; see native.Tokenizer.Piece.
func (m *Model) Piece(id uint32) ([]byte, bool) { return m.o.Tokenizer.Piece(id) }

// Info describes the tokenizer.
func (m *Model) Info() native.Info { return m.o.Tokenizer.Info() }
