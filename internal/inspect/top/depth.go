package top

import (
	"math"
	"strings"

	"github.com/eppctl/eppctl/internal/core/view"
)

// depths are how far into their prompts the picks of a pod hit: half of them no
// further than the first share, and nineteen of twenty no further than the second.
type depths struct {
	half, most float64
	ok         bool // there were picks whose token ids are known
}

func newDepths(from, to *[view.DepthBuckets]uint64) depths {
	var grew [view.DepthBuckets]float64
	all := 0.0
	for i := range grew {
		grew[i] = grown(from[i], to[i])
		all += grew[i]
	}
	if all == 0 {
		return depths{}
	}
	return depths{quantile(&grew, all*0.5), quantile(&grew, all*0.95), true}
}

// quantile is the share that so many of the picks do not exceed. Within a tenth they
// are taken to lie evenly.
func quantile(counts *[view.DepthBuckets]float64, rank float64) float64 {
	const tenth = 1.0 / (view.DepthBuckets - 1)
	if rank <= counts[0] {
		return 0
	}
	below := counts[0]
	for i := 1; i < len(counts); i++ {
		if n := counts[i]; n > 0 && rank <= below+n {
			return tenth * (float64(i-1) + (rank-below)/n)
		}
		below += counts[i]
	}
	return 1
}

// String has both, in percent.
func (x depths) String() string {
	if !x.ok {
		return unknown
	}
	return percent(x.half, true) + "/" + percent(x.most, true)
}

// depth draws both as one bar: full up to the half, thin up to the most.
func (g *glyphs) depth(x depths, w int) cell {
	if !x.ok {
		return known(unknown)
	}
	c := g.share(x.half, w, cool)
	thin := min(int(math.Ceil(x.most*float64(w))), w) - c.width()
	if thin > 0 {
		c += text(cool, strings.Repeat(g.thin, thin))
	}
	return c + text(dim, strings.Repeat(g.empty, max(w-c.width(), 0)))
}
