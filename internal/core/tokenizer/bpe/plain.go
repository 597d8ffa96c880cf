package bpe

import (
	"context"
	"unicode/utf8"
)

// Plain encodes any vocabulary, piece by piece with maps and a heap: those that New
// refuses, such as the small ones of tests that lack bytes. It may be used from any
// goroutine.
type Plain struct {
	spec   Spec
	merges map[[2]uint32]ranked
}

type ranked struct{ rank, product uint32 }

// NewPlain builds the maps.
func NewPlain(s *Spec) *Plain {
	p := &Plain{spec: *s, merges: map[[2]uint32]ranked{}}
	s.pairs(func(rank int, m Merge) {
		k := [2]uint32{m.Left, m.Right}
		if _, ok := p.merges[k]; !ok {
			p.merges[k] = ranked{uint32(rank), m.Product}
		}
	})
	return p
}

// AppendPiece appends the ids of one piece, unless ctx ends before.
func (p *Plain) AppendPiece(ctx context.Context, out []uint32, piece string) ([]uint32, error) {
	if p.spec.IgnoreMerges && piece != "" {
		if id, ok := p.spec.Vocab.Find([]byte(piece)); ok {
			return append(out, id), nil
		}
	}
	looked := 0
	ended := func() bool {
		looked++
		return looked%beatsPerLook == 0 && ctx.Err() != nil
	}
	nodes := p.start(piece, ended)
	var h heap
	look := func(i int32) {
		x := &nodes[i]
		x.code = None
		if int(x.next) < len(nodes) {
			if m, ok := p.merges[[2]uint32{x.id, nodes[x.next].id}]; ok {
				x.code = m.rank
				h.push(uint64(m.rank)<<32 | uint64(i))
			}
		}
	}
	for i := range nodes {
		nodes[i].prev, nodes[i].next = int32(i-1), int32(i+1)
	}
	for i := range nodes {
		if ended() {
			return out, ctx.Err()
		}
		look(int32(i))
	}
	for len(h) > 0 {
		if ended() {
			return out, ctx.Err()
		}
		top := h.pop()
		at := int32(uint32(top))
		x := &nodes[at]
		if x.code == None || x.code != uint32(top>>32) {
			continue
		}
		y := &nodes[x.next]
		x.id, x.next = p.merges[[2]uint32{x.id, y.id}].product, y.next
		y.code = None
		if int(x.next) < len(nodes) {
			nodes[x.next].prev = at
		}
		look(at)
		if x.prev >= 0 {
			look(x.prev)
		}
	}
	for i := 0; i < len(nodes); i = int(nodes[i].next) {
		out = append(out, nodes[i].id)
	}
	return out, ctx.Err()
}

// start makes the start symbols, some of them when the call has ended. Unknown ones that fuse are put where the next known
// character comes, which is behind the bytes of a character that has bytes.
func (p *Plain) start(piece string, ended func() bool) []node {
	var nodes []node
	unknown := false
	add := func(id uint32) {
		if id != None {
			nodes = append(nodes, node{id: id})
		}
	}
	flush := func() {
		if unknown {
			add(p.spec.Unknown)
		}
		unknown = false
	}
	miss := func() {
		if unknown && !p.spec.FuseUnknown {
			add(p.spec.Unknown)
		}
		unknown = true
	}
	if !p.spec.Chars {
		for _, b := range []byte(piece) {
			if ended() {
				return nodes
			}
			if id := p.spec.Bytes[b]; id != None {
				flush()
				add(id)
			} else {
				miss()
			}
		}
		flush()
		return nodes
	}
	for len(piece) > 0 && !ended() {
		_, n := utf8.DecodeRuneInString(piece)
		char := []byte(piece[:n])
		piece = piece[n:]
		if id, ok := p.spec.Vocab.Find(char); ok {
			flush()
			add(id)
			continue
		}
		if ids, ok := p.bytes(char); ok {
			for _, id := range ids {
				add(id)
			}
			continue
		}
		miss()
	}
	flush()
	return nodes
}

func (p *Plain) bytes(char []byte) (ids []uint32, ok bool) {
	for _, b := range char {
		if p.spec.Bytes[b] == None {
			return nil, false
		}
		ids = append(ids, p.spec.Bytes[b])
	}
	return ids, true
}
