package native_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// ending is a context that has ended once it was looked at some times: no clock decides
// how far a call gets.
type ending struct {
	context.Context
	looks atomic.Int64
}

func (c *ending) Err() error {
	if c.looks.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestEnded: a call ends with its context also inside one piece, which may be all of a
// prompt: ten million letters take seconds to merge. What it leaves behind is not taken
// for the ids of anything.
func TestEnded(t *testing.T) {
	w := newWriter(63)
	random := make([]byte, 256<<10)
	for i := range random {
		random[i] = 'a' + byte(w.IntN(26))
	}
	texts := []string{strings.Repeat("a", 256<<10), strings.Repeat(" ", 256<<10) + "a", string(random), strings.Repeat("的", 1_500_000)}
	parts := components()
	for _, name := range append(names(), "characters and bytes", "unigram with bytes", "missing bytes, fused") {
		var tok *native.Tokenizer
		if o, ok := parts[name]; ok {
			tok = loadObject(t, o)
		} else {
			tok = load(t, name)
		}
		for i, text := range texts {
			ctx := &ending{Context: t.Context()}
			ctx.looks.Store(3)
			if _, err := tok.EncodeContext(ctx, text, false); !errors.Is(err, context.Canceled) {
				t.Errorf("%s, text %d: %v", name, i, err)
			}
		}
		for i, text := range texts {
			text = text[:360] // within what is remembered of runs
			got := encode(t, tok, text)
			tok.Forget()
			if want := encode(t, tok, text); !slices.Equal(got, want) {
				t.Errorf("%s, text %d, afterwards: %s", name, i, difference(got, want))
			}
		}
	}
}

// TestNormalizerEnds: so does the normaliser of a tokenizer.model, also where it
// takes blanks off.
func TestNormalizerEnds(t *testing.T) {
	for _, kind := range []uint64{1, 3, 4} {
		tok, err := native.LoadSentencePiece(small(kind))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{strings.Repeat("a", 1<<10), strings.Repeat(" ", 1<<10)} {
			ctx := &ending{Context: t.Context()}
			ctx.looks.Store(10)
			if _, err := tok.EncodeContext(ctx, text, false); !errors.Is(err, context.Canceled) {
				t.Errorf("type %d, %.2q: %v", kind, text, err)
			}
		}
	}
}
