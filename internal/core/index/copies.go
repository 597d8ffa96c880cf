package index

import "github.com/eppctl/eppctl/internal/core/event"

// maxAgain caps the copies of a hash at four. An engine that repeats stores
// without a second copy inflates the count, and a hash that cannot be removed
// is a false hit until the next reset.
const maxAgain = 3

// againPage counts the further copies of the hashes in one page of the log:
// vLLM announces a hash once per physical block that holds it and removes it
// once per block; others merely repeat themselves. Two bits per place and tier.
// A page without such copies, which most are, has none (nil). A place that is
// not held on a tier counts zero there.
type againPage [pageHash / segBlocks][event.NumTiers]uint32

const againMask = 1<<2 - 1 // maxAgain fits

// againAt returns the word that counts for a place, and where in it.
func (l *seglog) againAt(at uint32, t event.Tier) (word *uint32, shift uint32) {
	return &l.pages[at/pageHash].again[at%pageHash/segBlocks][t], at % segBlocks * 2
}

// addAgain counts a further copy of the hash at a place that is held on t.
func (m *reverse) addAgain(at uint32, t event.Tier) {
	if page := &m.log.pages[at/pageHash]; page.again == nil {
		page.again = new(againPage)
	}
	if word, shift := m.log.againAt(at, t); *word>>shift&againMask < maxAgain {
		*word += 1 << shift
		m.again[t]++
	}
}

// dropAgain takes a further copy away; false when there was none.
func (m *reverse) dropAgain(at uint32, t event.Tier) bool {
	if m.log.pages[at/pageHash].again == nil {
		return false
	}
	word, shift := m.log.againAt(at, t)
	if *word>>shift&againMask == 0 {
		return false
	}
	*word -= 1 << shift
	m.again[t]--
	return true
}

// forgetAgain leaves one copy.
func (m *reverse) forgetAgain(at uint32, t event.Tier) {
	for m.dropAgain(at, t) {
	}
}

// clearAgain leaves one copy of each hash of a segment.
func (m *reverse) clearAgain(at uint32, t event.Tier) {
	if m.log.pages[at/pageHash].again == nil {
		return
	}
	word, _ := m.log.againAt(at, t)
	for w := *word; w != 0; w >>= 2 {
		m.again[t] -= int(w & againMask)
	}
	*word = 0
}

// forgetAllAgain leaves one copy of each hash on a tier.
func (m *reverse) forgetAllAgain(t event.Tier) {
	for _, page := range m.log.pages {
		if page.again == nil {
			continue
		}
		for i := range page.again {
			page.again[i][t] = 0
		}
	}
	m.again[t] = 0
}

// others counts further hashes that one place goes by: an engine can hash equal
// tokens differently for reasons its events do not show. It is rare, so only
// what is above one is in the map. 32 bits cannot wrap: a hash counts once per
// place and layer, and a member has at most 2^24 of them (seglog.room).
type others map[placeLayer]uint32

type placeLayer struct {
	place
	layer layer
}

func (o *others) add(p place, l layer) {
	if *o == nil {
		*o = others{}
	}
	(*o)[placeLayer{p, l}]++
}

// drop takes a further hash from a place; false when there was none, so that
// the place is not held any more.
func (o others) drop(p place, l layer) bool {
	if len(o) == 0 {
		return false
	}
	k := placeLayer{p, l}
	n := o[k]
	if n <= 1 {
		delete(o, k)
	} else {
		o[k] = n - 1
	}
	return n > 0
}

// clear forgets the layers for which drop says so.
func (o others) clear(drop func(layer) bool) {
	for k := range o {
		if drop(k.layer) {
			delete(o, k)
		}
	}
}
