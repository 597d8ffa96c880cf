package index

// copies counts what the reverse map's one bit per (hash, tier) cannot. Both
// tables hold only what is above one, which is rare, and die with the member.
type copies struct {
	// again counts further copies of one hash: vLLM announces a hash once per
	// physical block that holds it and removes it once per block. Others merely
	// repeat themselves, which is why the count is capped.
	again map[hashLayer]uint8
	// others counts further hashes that one place goes by: an engine can hash
	// equal tokens differently for reasons its events do not show.
	others map[placeLayer]uint16
}

// maxAgain caps the copies of a hash at four. An engine that repeats stores
// without a second copy inflates the count, and a hash that cannot be removed
// is a false hit until the next reset.
const maxAgain = 3

type hashLayer struct {
	hash  uint64
	layer layer
}

type placeLayer struct {
	place
	layer layer
}

func (c *copies) addAgain(hash uint64, l layer) {
	if c.again == nil {
		c.again = map[hashLayer]uint8{}
	}
	if k := (hashLayer{hash, l}); c.again[k] < maxAgain {
		c.again[k]++
	}
}

// dropAgain takes a further copy away; false when there was none.
func (c *copies) dropAgain(hash uint64, l layer) bool {
	if len(c.again) == 0 {
		return false
	}
	k := hashLayer{hash, l}
	n := c.again[k]
	if n <= 1 {
		delete(c.again, k)
	} else {
		c.again[k] = n - 1
	}
	return n > 0
}

func (c *copies) forgetAgain(hash uint64, l layer) {
	if len(c.again) > 0 {
		delete(c.again, hashLayer{hash, l})
	}
}

func (c *copies) addOther(p place, l layer) {
	if c.others == nil {
		c.others = map[placeLayer]uint16{}
	}
	c.others[placeLayer{p, l}]++
}

// dropOther takes a further hash from a place; false when there was none, so
// that the place is not held any more.
func (c *copies) dropOther(p place, l layer) bool {
	if len(c.others) == 0 {
		return false
	}
	k := placeLayer{p, l}
	n := c.others[k]
	if n <= 1 {
		delete(c.others, k)
	} else {
		c.others[k] = n - 1
	}
	return n > 0
}

// clear forgets the layers for which drop says so.
func (c *copies) clear(drop func(layer) bool) {
	for k := range c.again {
		if drop(k.layer) {
			delete(c.again, k)
		}
	}
	for k := range c.others {
		if drop(k.layer) {
			delete(c.others, k)
		}
	}
}

// total is the number of further copies on a layer.
func (c *copies) total(l layer) (n int) {
	for k, v := range c.again {
		if k.layer == l {
			n += int(v)
		}
	}
	return n
}
