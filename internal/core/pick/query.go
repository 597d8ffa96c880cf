// Package pick chooses a pod: match, filter, score, select. Decide is the only
// entry; serve answers Envoy from the Card it fills and explain prints the same
// Card.
package pick

import (
	"net/netip"

	"github.com/eppctl/eppctl/internal/core/affinity"
	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// Query is one request as the decision sees it. Now is a value: Decide reads no
// clock.
type Query struct {
	RequestID string // never empty: the tie-break's key
	Now       int64  // ns
	Model     string // as the client asked, for display
	Base      string // base model a pod must serve; "" = any pod will do
	Adapter   string // LoRA adapter the request needs; "" = none
	// Prompt holds the exact token ids; of several prompts the first, and Further are the
	// others. Without any (Prompt.Tokens nil) nothing matches, Unmatched says why, and
	// PromptTokens, of all Prompts together, is an estimate. Prompts 0 means one.
	Prompt       block.Prompt
	Further      []block.Prompt
	PromptTokens int
	Prompts      int
	Unmatched    reason.Code
	// Bytes stand for a prompt without ids: where the same bytes were placed before
	// is a guess at who has it. They are never compared with the index.
	Bytes  affinity.Prefix
	Origin Origin
	// Subset restricts the candidates; nil = the whole pool.
	Subset *Subset
	// Priority below 0 marks a request that may be shed under load.
	Priority int
}

// Origin says who told the prompt's token ids.
type Origin struct {
	Provider string // "body", "native", "render", "tokenize"; "bytes" = nobody, and the bytes are compared; "" = nobody
	Status   string // what the provider claims: "exact", "unverified"; "" without ids
	Tried    []Attempt
	// Cut tells that the ids are of the prompt up to its first image, sound or video that
	// no provider named: what is behind it matches nothing.
	Cut bool
}

// Attempt is a provider that could not tell, and why.
type Attempt struct {
	Provider string
	Why      reason.Code
	Detail   string // the same in words, where there are any; nothing of the request
}

// Subset is the gateway's endpoint hint. An empty one admits nobody.
type Subset struct {
	Addrs []netip.AddrPort // exact ip:port
	IPs   []netip.Addr     // any port of that address
}

// Admits reports whether the hint names this endpoint.
func (s *Subset) Admits(a netip.AddrPort) bool {
	for _, x := range s.Addrs {
		if x == a {
			return true
		}
	}
	for _, x := range s.IPs {
		if x == a.Addr() {
			return true
		}
	}
	return false
}
