package serve

import (
	"context"
	"time"

	"github.com/eppctl/eppctl/internal/core/affinity"
	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// bytesShare: of the time that is left when providers are asked, one part of so many is
// kept for comparing bytes, which is wanted most where they hang until their end. A tenth
// of the usual 500 ms is what a body of 32 MiB takes.
const bytesShare = 10

// beforeBytes is the context of the providers that are asked before bytes are compared.
func beforeBytes(ctx context.Context, c *prompt.Chain) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || !c.Bytes {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/bytesShare))
}

// placeByBytes completes the query by the bytes of its prompt, until ctx ends: those read
// by then are a shorter beginning, and as good.
func (p *Picker) placeByBytes(ctx context.Context, body []byte, salt string, q *pick.Query) {
	d := p.fleet.Affinity.Digest(affinity.Namespace{Model: q.Base, LoRA: q.Adapter, Salt: salt})
	err := prompt.Pieces(ctx, body, d.Write)
	q.Bytes = d.Prefix()
	if err != nil {
		q.Bytes.Bytes = len(body) // about what all of it is: shares are of that
	}
	switch {
	case len(q.Bytes.Keys) > 0:
		q.Origin.Provider = byBytes
	case err != nil:
		q.Origin.Tried = append(q.Origin.Tried, pick.Attempt{Provider: byBytes, Why: reason.TokenizeSlow})
	}
}

// bytesTell reports whether equal bytes may mean a common cache, although there
// are no ids.
func bytesTell(why reason.Code) bool {
	switch why {
	case reason.PrivateCache, reason.CacheBypassed, reason.BodyCut, reason.NameTooLong:
		return false
	}
	return true
}
