package index

import (
	"math"
	"strings"

	"github.com/eppctl/eppctl/internal/core/event"
)

// GroupKind is a KV cache group besides the one whose blocks make the trie.
type GroupKind struct {
	Group     int
	Kind      string // as the engine names it, "" = full attention
	Window    int    // tokens, 0 = none
	BlockSize int    // tokens, 0 = not told
	Stores    uint64 // events seen
	// Exact is set when matches are shortened by what this group holds. A
	// member with a group that is not is predicted too high at times.
	Exact bool
}

// maxKinds bounds what one member can make the index remember.
const maxKinds = 64

// groups is what a member's stores told about its cache groups; removals carry
// the number only. The blocks of the first group that keeps whole prompts make
// the trie: its stores are dense. The others only shorten a match.
type groups struct {
	known   bool
	indexed int
	others  []GroupKind
	windows []window // parallel to others
}

// plain reports that the event goes into the trie, of the engines that have one
// group, which most do. It is small enough to be inlined.
func (g *groups) plain(e *event.Event) bool {
	return len(g.others) == 0 && g.known && e.Group == g.indexed && (e.Kind == event.Removed || e.SpecKind == "")
}

// classify tells where an event goes: into the trie, or to the i-th of the
// other groups (-1 = there is no room to remember it). changed is set when
// something new was learned.
func (g *groups) classify(e *event.Event) (trie bool, i int, changed bool) {
	i = g.other(e.Group)
	switch {
	case g.known && e.Group == g.indexed:
		if e.Kind != event.Stored || e.FullAttention() {
			return true, 0, false
		}
	case e.Kind != event.Stored:
		return i < 0 && !g.known, i, false
	case i >= 0 && e.SpecKind == "": // a placeholder names no kind
	case !g.known && e.FullAttention():
		if e.Dense() {
			g.known, g.indexed = true, e.Group
		}
		return true, 0, e.Dense()
	}
	if e.Kind == event.Stored {
		i, changed = g.note(i, e)
	}
	return false, i, changed
}

func (g *groups) other(group int) int {
	for i := range g.others {
		if g.others[i].Group == group {
			return i
		}
	}
	return -1
}

func (g *groups) note(i int, e *event.Event) (at int, changed bool) {
	if i < 0 {
		if len(g.others) == maxKinds {
			return -1, false
		}
		i = len(g.others)
		g.others = append(g.others, GroupKind{Group: e.Group})
		g.windows = append(g.windows, window{})
		changed = true
	}
	k := &g.others[i]
	if e.SpecKind != "" && (k.Kind != e.SpecKind || k.Window != e.Window) {
		k.Kind, k.Window = strings.Clone(e.SpecKind), e.Window
		changed = true
	}
	if e.BlockSize > 0 && k.BlockSize != e.BlockSize {
		k.BlockSize = e.BlockSize
		changed = true
	}
	if w := &g.windows[i]; !w.sparse && len(e.Tokens) > 0 && !e.Dense() {
		w.sparse, changed = true, true
	}
	k.Stores++
	return i, changed
}

// keeps returns how many blocks before its end a hit needs in the group; false
// when the group's rule is not known, or its blocks are not those of the trie.
// vLLM: a sliding window of w tokens needs the last ⌈(w-1)/size⌉ blocks, further
// groups of full attention all. Engines of before the kind was published name
// none: a group that leaves blocks out is then not what that would mean.
func (k *GroupKind) keeps(size int, sparse bool) (blocks uint32, ok bool) {
	switch {
	case size <= 0 || k.BlockSize != size:
		return 0, false
	case strings.HasPrefix(k.Kind, "sliding_window") && k.Window > 0:
		return uint32(min((k.Window-1+size-1)/size, math.MaxUint32)), true
	}
	full := event.Event{SpecKind: k.Kind}
	return math.MaxUint32, full.FullAttention() && !sparse
}
