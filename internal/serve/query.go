package serve

import (
	"cmp"
	"context"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
)

// read completes the query by what the body says: model, adapter and prompt.
// What cannot be understood leaves a reason in the query and is routed by load.
func (p *Picker) read(ctx context.Context, r *rules, a *ask, q *pick.Query) *refusal {
	cut := a.Why == reason.BodyCut || a.Why == reason.Deadline // may still name its model
	if a.Why != reason.None && !(cut && len(a.Body) > 0) {
		return p.resolve(r, q, false)
	}
	req, why, bad := p.parse(ctx, a, r.limit, prompt.Limits{DefaultModel: cmp.Or(q.Model, r.standard), Cut: cut})
	if bad != nil {
		return problem(bad)
	}
	if why != reason.None {
		q.Unmatched = why
		return p.resolve(r, q, false)
	}
	q.Model = cmp.Or(q.Model, req.Model)
	if no := p.resolve(r, q, !cut && req.Kind != prompt.Unknown); no != nil {
		return no
	}
	a.rename(req.Model, cmp.Or(q.Adapter, q.Base, q.Model))
	q.Adapter = cmp.Or(req.Adapter, q.Adapter)
	if !cut {
		q.PromptTokens, q.Prompts = req.IDs+req.Chars/bytesPerToken, req.Prompts
	}
	if a.Why == reason.Deadline {
		return nil // no time for tokens
	}
	p.tokenize(ctx, r.chain(q.Base), a, req, q)
	return nil
}

// parse reads the body in a slot, at most limit bytes of it as text. why says why
// it was not read, bad what is wrong with it.
func (p *Picker) parse(ctx context.Context, a *ask, limit int, lim prompt.Limits) (req *prompt.Request, why reason.Code, bad *prompt.Problem) {
	switch {
	case a.Head.Overlong:
		return nil, reason.NameTooLong, nil
	case lim.Cut && coding(a.Head.Encoding) != "":
		return nil, reason.Compressed, nil
	case !p.slots.enter(ctx, a.Aside):
		return nil, reason.Deadline, nil
	}
	defer p.slots.leave(a.Aside)
	if err := a.unpack(limit); err != nil {
		p.log.Debug("compressed body not read", "request_id", a.Head.RequestID, "error", err)
		return nil, reason.Compressed, nil
	}
	req, bad = prompt.Parse(a.Head.Path, a.Head.ContentType, a.text(), lim)
	return req, reason.None, bad
}

// tokenize completes the query by the prompt's token ids, or where nobody can tell
// them by its bytes.
func (p *Picker) tokenize(ctx context.Context, c *prompt.Chain, a *ask, req *prompt.Request, q *pick.Query) {
	asking, done := beforeBytes(ctx, c)
	defer done()
	got := c.Tokens(asking, req, q.Base, a.text(), func(ctx context.Context) (func(), bool) {
		return func() { p.slots.leave(a.Aside) }, p.slots.enter(ctx, a.Aside)
	})
	q.Unmatched, a.Doubtful = got.Why, got.Doubtful
	q.Origin = pick.Origin{Provider: got.Provider, Status: string(got.Status)}
	for _, t := range got.Tried {
		q.Origin.Tried = append(q.Origin.Tried, pick.Attempt(t))
	}
	switch {
	case got.Why == reason.None:
		q.Origin.Cut = got.Cut >= 0
		q.Prompt = block.Prompt{Model: q.Base, LoRA: q.Adapter, Salt: req.Salt, Tokens: got.IDs, Cut: got.Cut, Items: itemsOf(got.Items)}
		for _, ids := range got.Further {
			q.Further = append(q.Further, block.Prompt{Model: q.Base, LoRA: q.Adapter, Salt: req.Salt, Tokens: ids, Cut: -1})
		}
	case c.Bytes && p.fleet.Affinity != nil && bytesTell(got.Why):
		p.placeByBytes(ctx, a.text(), req.Salt, q)
	}
	a.Tokenizer = q.Origin.Provider
}

// itemsOf are a prompt's images, sounds and videos as the index knows them.
func itemsOf(list []tokenizer.Item) (items []block.Item) {
	for _, it := range list {
		items = append(items, block.Item{ID: block.IdentifyItem(it.Name), Offset: it.Offset, Length: it.Length})
	}
	return items
}
