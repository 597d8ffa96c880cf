package index

import (
	"math/bits"
	"sync"
)

// tablePool keeps the tables that reverse maps have outgrown for those that
// grow next: touching a fresh page of memory costs more than clearing a used
// one. That is safe because no reader ever sees a reverse map. What nobody takes
// the garbage collector does.
type tablePool [bits.UintSize]sync.Pool // by power of two of the length

// get returns a cleared table of n buckets.
func (p *tablePool) get(n int) []bucket {
	class := &p[bits.Len(uint(n))]
	if t, _ := class.Get().(*[]bucket); t != nil {
		if cap(*t) >= n {
			clear((*t)[:n])
			return (*t)[:n]
		}
		class.Put(t)
	}
	return make([]bucket, n)
}

// put takes a table that nobody uses any more.
func (p *tablePool) put(t []bucket) {
	if cap(t) > 0 {
		p[bits.Len(uint(cap(t)))].Put(&t)
	}
}
