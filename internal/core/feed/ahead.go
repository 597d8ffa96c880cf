package feed

import "hash/crc32"

// aheadBatches is how many batches of a replay are remembered until they come
// live too. More cannot be on their way: a publisher keeps order, so what comes
// live behind a replay was sent before it was answered, and our queue holds no
// more.
const aheadBatches = queueBatches

// ahead remembers what a replay brought that has not come live yet. It proves that
// the two ports are of one publisher: a batch has the same bytes at both.
type ahead struct {
	first uint64 // number of the first of sums
	sums  []uint32
}

// add remembers a batch. A number that does not follow starts over.
func (a *ahead) add(seq uint64, sum uint32) {
	if seq != a.first+uint64(len(a.sums)) || len(a.sums) == 0 {
		a.first, a.sums = seq, a.sums[:0]
	}
	if len(a.sums) == aheadBatches { // half at once: each is then moved once
		n := copy(a.sums, a.sums[aheadBatches/2:])
		a.first, a.sums = a.first+aheadBatches/2, a.sums[:n]
	}
	a.sums = append(a.sums, sum)
}

// vouches reports that a batch that came live is the one that was replayed.
func (a *ahead) vouches(seq uint64, sum uint32) bool {
	i := seq - a.first // wraps around below first
	return seq >= a.first && i < uint64(len(a.sums)) && a.sums[i] == sum
}

// digest tells payloads apart. Those of two engines differ at least in their time
// stamp; nobody has a reason to forge one.
func digest(payload []byte) uint32 { return crc32.Checksum(payload, castagnoli) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
