package native

import (
	"slices"

	"github.com/eppctl/eppctl/internal/core/tokenizer/bpe"
)

// lastOfRepeated leaves of a pair that is listed more than once the last merge: the engines
// keep merges in a map, so that a later rank takes the place of an earlier (tokenizers
// 0.23.3, models/bpe/model.rs, BpeBuilder.build). entries is one more than the highest id.
//
// Merges of one product with the same left part are of the same pair. A product has as many
// left parts as bytes at most, and mostly a handful, so that each merge is held against those
// of its product before it.
func lastOfRepeated(merges []bpe.Merge, entries int) []bpe.Merge {
	newest := make([]uint32, entries)    // by product: one more than the place of its last merge
	older := make([]uint32, len(merges)) // by merge: the same of the one before of its product
	repeated := false
	for i, x := range merges {
		for link := &newest[x.Product]; *link > 0; link = &older[*link-1] {
			if before := *link - 1; merges[before].Left == x.Left {
				merges[before].Left, repeated = bpe.None, true
				*link = older[before]
				break
			}
		}
		older[i] = newest[x.Product]
		newest[x.Product] = uint32(i) + 1
	}
	if !repeated {
		return merges
	}
	return slices.DeleteFunc(merges, func(x bpe.Merge) bool { return x.Left == bpe.None })
}
