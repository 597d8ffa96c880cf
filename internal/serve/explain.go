package serve

import (
	"context"
	"slices"
	"time"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Explain decides as Pick does and leaves no trace. A decision without a pod is
// explained too; the refusal is of requests that reach no decision, or have a
// condition that it does not meet.
//
// The card is the decision itself: see reason.
func (p *Picker) Explain(ctx context.Context, a *ask) (*pick.Explanation, *pick.Card, *refusal) {
	if a.Head.RequestID == "" {
		a.Head.RequestID = newRequestID()
	}
	a.Aside = true
	d := &decided{}
	q, no := p.decide(ctx, a, d)
	if q == nil || no != nil && d.card.Outcome == pick.Picked {
		return nil, nil, no
	}
	x := explained(&d.card, d.times)
	if q.Origin.Provider == byNative || slices.ContainsFunc(q.Origin.Tried, isRefuted) {
		x.Tokenizer.Parity = p.parity.of(q.Base)
	}
	if q.Origin.Provider == byNative {
		if f := p.nativeFiles(q.Base); f != nil {
			x.Tokenizer.Split = f.Split
		}
	}
	if a.ShowIDs && q.Unmatched == reason.None {
		x.Prompt = p.promptTokens(&d.card, q)
	}
	if p.past {
		x.Source, x.At = "recording", stamp(time.Unix(0, q.Now).UTC())
	}
	return x, &d.card, nil
}

// promptTokens are the ids of a question, for whoever asked it.
func (p *Picker) promptTokens(c *pick.Card, q *pick.Query) *pick.ExplainedPrompt {
	x := &pick.ExplainedPrompt{IDs: q.Prompt.Tokens}
	for i := range q.Further {
		x.Further = append(x.Further, q.Further[i].Tokens)
	}
	if q.Prompt.Cut >= 0 {
		x.Cut = &q.Prompt.Cut
	}
	for _, it := range q.Prompt.Items {
		x.Media = append(x.Media, pick.ExplainedItem{Offset: it.Offset, Length: it.Length})
	}
	if w := c.WinnerRow(); w != nil {
		size := int(w.Match.Size)
		if size == 0 && len(w.Pod.Members) > 0 {
			size = p.fleet.Index.ExpectedSize(w.Pod.Members[0])
		}
		x.BlockSize = &size
	}
	if q.Origin.Provider == byNative {
		x.Files = p.nativeFiles(q.Base)
	}
	return x
}

// nativeFiles are those of a model's native tokenizer, nil when unknown.
func (p *Picker) nativeFiles(model string) *view.TokenizerFiles {
	if p.tokenizers == nil {
		return nil
	}
	return nativeFiles(p.tokenizers(), model)
}

// stamp writes a time as Explanation.At has it.
func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000000000Z07:00") }

func explained(c *pick.Card, t times) *pick.Explanation {
	x := c.Explanation()
	x.At = stamp(wall(c.Now))
	read, took := micros(t.read), micros(t.took)
	x.ReadUs, x.DecideUs = &read, &took
	return x
}

// isRefuted tells that a provider was passed over since its ids are not the engine's.
func isRefuted(t pick.Attempt) bool { return t.Why == reason.Refuted }
