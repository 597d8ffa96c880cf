package tap

import (
	"slices"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/recording"
)

// maxChains bounds the blocks that prefix remembers per pod: a pool of 32 million
// tokens in blocks of 32. Beyond it starts over, and chains then in the cache are
// told by their own tokens only.
const maxChains = 1 << 20

// prefix knows which blocks hang on a chain that begins with certain token ids. A
// store whose parent it has not seen is taken for the begin of a chain: of what
// was stored before tap came there is no more to know.
type prefix struct {
	ids  []uint32
	pods map[*recording.Pod]map[chain]int // tokens of the prefix matched by then
}

// chain is one block of one cache group.
type chain struct {
	group int
	hash  uint64
}

func newPrefix(ids []uint32) *prefix {
	return &prefix{ids: ids, pods: map[*recording.Pod]map[chain]int{}}
}

// see follows the stores of a message.
func (p *prefix) see(e *Entry) {
	if e.Type == recording.TypeNotice && e.Notice.Purged {
		delete(p.pods, e.Pod)
	}
	if e.Batch == nil {
		return
	}
	known := p.pods[e.Pod]
	if known == nil {
		known = map[chain]int{}
		p.pods[e.Pod] = known
	}
	for i := range e.Batch.Events {
		ev := &e.Batch.Events[i]
		switch ev.Kind {
		case event.Cleared:
			clear(known)
		case event.Stored:
			if len(known)+len(ev.Hashes) > maxChains {
				clear(known)
			}
			p.store(known, ev)
		}
	}
}

// store notes the blocks of a store that are on the prefix.
func (p *prefix) store(known map[chain]int, ev *event.Event) {
	at, ok := p.start(known, ev)
	if !ok {
		return
	}
	for i, h := range ev.Hashes {
		if ev.Dense() {
			if at, ok = p.extend(at, ev.Tokens[i*ev.BlockSize:(i+1)*ev.BlockSize]); !ok {
				return
			}
		} else if at < len(p.ids) {
			return // no telling where its blocks are
		}
		known[chain{ev.Group, h}] = at
	}
}

// start is how much of the prefix lies before a store; false = it is on another
// chain.
func (p *prefix) start(known map[chain]int, ev *event.Event) (at int, ok bool) {
	if !ev.HasParent || ev.Parent == 0 {
		return 0, true
	}
	at, ok = known[chain{ev.Group, ev.Parent}]
	if !ok {
		// Own tokens only: they must bring all of it.
		return 0, len(ev.Tokens) >= len(p.ids) && slices.Equal(ev.Tokens[:len(p.ids)], p.ids)
	}
	return at, true
}

// extend is how much of the prefix is matched behind more tokens.
func (p *prefix) extend(at int, tokens []uint32) (int, bool) {
	n := min(len(p.ids)-at, len(tokens))
	return at + n, slices.Equal(tokens[:n], p.ids[at:at+n])
}

// begins reports whether the event is about a chain that begins with the prefix.
// It is asked behind see: a removal keeps its block known.
func (p *prefix) begins(pod *recording.Pod, ev *event.Event) bool {
	known := p.pods[pod]
	for _, h := range ev.Hashes {
		if at, ok := known[chain{ev.Group, h}]; ok && at == len(p.ids) {
			return true
		}
	}
	return false
}
