package native

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/eppctl/eppctl/internal/core/tokenizer/bpe"
)

// scratch is what one call writes.
type scratch struct {
	ctx    context.Context // of the call
	bpe    *bpe.Scratch    // nil without tables
	ids    []uint32
	text   []byte // normalised
	pieces [2][]passage
}

// maxKept is the most ids whose room is kept between calls: a prompt of a million
// tokens. Rarer, longer ones make their own.
const maxKept = 1 << 20

// firstIDs is room for the ids of a text of 200 kB. All of it is written to, so that not
// the first call waits for the system to hand it out: that took 5 % of the first 128 kB of
// English.
const firstIDs = 1 << 16

func (sc *scratch) keep(ids []uint32) {
	if cap(ids) <= maxKept {
		sc.ids = ids
	}
	if cap(sc.text) > 4*maxKept {
		sc.text = nil
	}
}

// pool lends scratches, one for each processor, and makes new ones when they are out.
type pool struct {
	slots []atomic.Pointer[scratch]
	make  func() *scratch
}

// newPool makes the first scratch at once: loading is the time to wait for it.
func newPool(model *bpe.Model) pool {
	p := pool{
		slots: make([]atomic.Pointer[scratch], runtime.GOMAXPROCS(0)),
		make: func() *scratch {
			sc := &scratch{ctx: context.Background(), ids: make([]uint32, firstIDs)}
			clear(sc.ids)
			if model != nil {
				sc.bpe = bpe.NewScratch()
			}
			return sc
		},
	}
	p.put(p.make())
	return p
}

// get takes a scratch with one atomic swap. Unlike sync.Pool the slots survive garbage
// collections, with what the caches in them know.
func (p *pool) get(ctx context.Context) *scratch {
	s := p.free()
	s.ctx = ctx
	if s.bpe != nil {
		s.bpe.Begin(ctx)
	}
	return s
}

func (p *pool) free() *scratch {
	for i := range p.slots {
		if s := p.slots[i].Swap(nil); s != nil {
			return s
		}
	}
	return p.make()
}

func (p *pool) put(s *scratch) {
	s.ctx = context.Background() // the call's is not kept alive
	if s.bpe != nil {
		s.bpe.End()
	}
	for i := range p.slots {
		if p.slots[i].Load() == nil && p.slots[i].CompareAndSwap(nil, s) {
			return
		}
	}
}
