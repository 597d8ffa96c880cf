// Package pick chooses a pod: match, filter, score, select. Decide is the only
// entry; serve answers Envoy from the Card it fills and explain prints the same
// Card.
package pick

import (
	"net/netip"

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
	// Prompt holds the exact token ids. Without any (Prompt.Tokens nil) nothing
	// matches, Unmatched says why, and PromptTokens is an estimate.
	Prompt       block.Prompt
	PromptTokens int
	Unmatched    reason.Code
	// Subset restricts the candidates; nil = the whole pool.
	Subset *Subset
	// Priority below 0 marks a request that may be shed under load.
	Priority int
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
