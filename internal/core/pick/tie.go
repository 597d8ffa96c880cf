package pick

import (
	"crypto/sha256"
	"encoding/binary"
)

// settleTie chooses among pods whose scores differ by less than the estimates
// can tell: rendezvous hashing over the request id. Every replica gives the same
// answer for the same request, a pod that leaves moves only what it had won, and
// an idle fleet after a scale-out is used evenly.
//
// Equal prompts need no help from here: the first one placed inserts its prefix,
// so the second does not tie. floor is the least total that ties.
func (c *Card) settleTie(floor float64) {
	c.Tie.Used = true
	winner := -1
	for i := range c.Rows {
		r := &c.Rows[i]
		if !r.Candidate || r.Total < floor {
			continue
		}
		r.Tied = true
		r.Weight, c.key = rendezvous(c.key[:0], c.RequestID, r.Pod.Target)
		if winner < 0 || heavier(r, &c.Rows[winner]) {
			winner = i
		}
	}
	c.Winner = winner
}

// heavier orders tied rows; equal weights, which nobody will see, by address.
func heavier(a, b *Row) bool {
	if a.Weight != b.Weight {
		return a.Weight > b.Weight
	}
	return a.Pod.Target < b.Pod.Target
}

// rendezvous is the first eight bytes, big-endian, of SHA-256(id ‖ 0x00 ‖
// "ip:port"). It builds its input in buf and returns it for reuse.
func rendezvous(buf []byte, id, target string) (uint64, []byte) {
	buf = append(buf, id...)
	buf = append(buf, 0)
	buf = append(buf, target...)
	return weigh(buf), buf
}

func weigh(key []byte) uint64 {
	sum := sha256.Sum256(key)
	return binary.BigEndian.Uint64(sum[:])
}
