package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/modelsource"
)

// Tokenizer is one that serve makes token ids with.
type Tokenizer struct {
	Model    string // name of the entry
	Source   string // folder, or name on the hub
	Revision string
	Options  modelsource.Options
}

const tokenizer = "tokenizer"

// tokenizers loads what serve would load, from where it would. Without a word with the
// hub a name that is not in the cache is neither good nor bad.
func (c *Command) tokenizers(ctx context.Context, list []Tokenizer) (facts []feed.Fact) {
	for _, t := range list {
		if ctx.Err() != nil {
			return facts
		}
		facts = append(facts, c.tokenizer(ctx, t))
	}
	return facts
}

func (c *Command) tokenizer(ctx context.Context, t Tokenizer) feed.Fact {
	fact := feed.Fact{What: tokenizer}
	told, err := c.load(ctx, t)
	var e *modelsource.Error
	switch {
	case err == nil:
		fact.OK = true
	case c.ConfigOnly && errors.As(err, &e) && e.Kind == modelsource.Missing && modelsource.CheckName(t.Source) == nil:
		fact.Skipped, told = true, "not in the cache, and --config-only does not ask the hub"
	default:
		told = err.Error()
	}
	fact.Detail = t.Model + ": " + told
	return fact
}

// load says in words what was loaded.
func (c *Command) load(ctx context.Context, t Tokenizer) (string, error) {
	settings, err := c.Hub()
	if err != nil {
		return "", err
	}
	settings.Offline = settings.Offline || c.ConfigOnly
	settings.Retries, settings.Patience = -1, modelsource.PersonsPatience // serve goes on trying
	place, err := settings.Find(ctx, t.Source, t.Revision)
	if err != nil {
		return "", err
	}
	m, err := place.Load(t.Options)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("%s of %s", m.Identity.Vocabulary.Name, place.Dir)
	if place.Stale != nil {
		text += ", from the cache: " + place.Stale.Error()
	}
	if m.Identity.NoChat != "" {
		text += "; chats go to the next provider: " + m.Identity.NoChat
	}
	return text, nil
}
