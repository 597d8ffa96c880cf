package modelsource

import (
	"fmt"
	"slices"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/tokenizer/native"
)

// specialsDoubt says why what t puts around a text may not be what the engine puts
// there: transformers lets add_bos_token and add_eos_token win over the tokenizer's
// file for some classes and versions, and not for others.
func (c *config) specialsDoubt(t *native.Tokenizer) string {
	before, after := t.Around()
	for _, x := range []struct {
		name, where string
		asks        *bool
		has         bool
	}{
		{"add_bos_token", "in front", c.addsBOS, len(before) > 0},
		{"add_eos_token", "at the end", c.addsEOS, len(after) > 0},
	} {
		switch {
		case x.asks == nil || *x.asks == x.has:
		case *x.asks:
			return fmt.Sprintf("tokenizer_config.json asks for a token %s (%s), and the tokenizer's file has none", x.where, x.name)
		default:
			return fmt.Sprintf("tokenizer_config.json asks for no token %s (%s), and the tokenizer's file has one", x.where, x.name)
		}
	}
	return ""
}

// otherVocabulary says that the engine encodes chats by another vocabulary than t, which
// was read from the model's files; nil = by this one.
func otherVocabulary(r *chat.Renderer, t *native.Tokenizer) error {
	sample, want := r.Vocabulary()
	if sample == "" {
		return nil
	}
	if ids, err := t.Encode(sample, false); err != nil || !slices.Equal(ids, want) {
		return &chat.Unrenderable{Reason: "the engine uses the Harmony encoding with a vocabulary of its own (o200k_harmony), which the model's files do not have"}
	}
	return nil
}

// addedDoubt names a token that the engine adds from added_tokens_decoder and t, read
// from a tokenizer.json, does not match in a text.
func (c *config) addedDoubt(t *native.Tokenizer) string {
	for _, a := range c.added {
		if a.Content == "" {
			continue
		}
		ids, err := t.Encode(a.Content, false)
		if err != nil || len(ids) != 1 || ids[0] != a.ID {
			return fmt.Sprintf("tokenizer_config.json adds the token %q as %d, and tokenizer.json does not", clip(a.Content), a.ID)
		}
	}
	return ""
}
