package parity

import (
	"slices"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
)

// piece is the part of an announced prompt that an event brings. The hash of a block is
// made of the ids up to its end, as an engine's is.
func piece(prompt []uint32, from, to int) []event.Event {
	e := stored(prompt[from*page : to*page])
	for i := range e[0].Hashes {
		e[0].Hashes[i] = chained(prompt[:(from+i+1)*page])
	}
	if e[0].HasParent = from > 0; e[0].HasParent {
		e[0].Parent = chained(prompt[:from*page])
	}
	return e
}

func chained(ids []uint32) (h uint64) {
	for _, id := range ids {
		h = (h ^ uint64(id)) * 0x100000001b3
	}
	return h
}

// TestWhereIDsPart: the place is that of the announced prompt that begins most like the
// request, however it comes and whatever else comes.
func TestWhereIDsPart(t *testing.T) {
	prompt := text(1, 10*page+5)
	after := func(at int, more ...uint32) []uint32 { // ids in place of the one at a position
		return slices.Concat(prompt[:at], more, prompt[at+1:])
	}
	like := func(at int) []uint32 { return slices.Concat(prompt[:at], text(2, 10*page-at)) } // somebody else's
	for _, tc := range []struct {
		name string
		held int
		do   func(send func(prompt []uint32, from, to int))
		want Verdict
		at   int // -1 = not told
	}{
		{"no BOS", 0, func(send func([]uint32, int, int)) { send(prompt[1:], 0, 10) }, Differs, 0},
		{"another BOS", 0, func(send func([]uint32, int, int)) { send(after(0, 7), 0, 10) }, Differs, 0},
		{"a second BOS", 0, func(send func([]uint32, int, int)) { send(slices.Concat(prompt[:1], prompt), 0, 10) }, Differs, 1},
		{"in pieces", 0, func(send func([]uint32, int, int)) {
			ids := after(70, 7, 8)
			send(ids, 0, 3)
			send(ids, 3, 10)
		}, Differs, 70},
		{"page by page, at the end of one", 0, func(send func([]uint32, int, int)) {
			for i := range 10 {
				send(after(5*page-1, 7), i, i+1)
			}
		}, Differs, 5*page - 1},
		{"in the last block that is compared", 0, func(send func([]uint32, int, int)) { send(after(9*page+2, 7), 0, 10) }, Differs, 9*page + 2},
		{"behind what is held", 6, func(send func([]uint32, int, int)) { send(after(6*page+9, 7), 6, 10) }, Differs, 6*page + 9},
		{"behind what is held, in pieces", 6, func(send func([]uint32, int, int)) {
			send(after(8*page+1, 7), 6, 8)
			send(after(8*page+1, 7), 8, 10)
		}, Differs, 8*page + 1},
		{"in front of what is held", 6, func(send func([]uint32, int, int)) { send(prompt[1:], 0, 10) }, Differs, -1},
		{"beside prompts that begin alike", 0, func(send func([]uint32, int, int)) {
			send(like(3*page+12), 0, 10)
			send(after(87, 7), 0, 10)
			send(like(2*page), 0, 10)
		}, Differs, 87},
		{"behind a block in the middle of another's", 0, func(send func([]uint32, int, int)) {
			send(like(5*page+3), 0, 10)
			send(after(5*page+7, 7), 5, 10) // the five in front are held since
		}, Differs, 5*page + 7},
		{"behind a block that another's hangs at too", 0, func(send func([]uint32, int, int)) {
			send(prompt, 0, 5)
			send(like(5*page), 5, 10)
			send(after(5*page+7, 7), 5, 10)
		}, Differs, 5*page + 7},
		{"one that begins more alike, and is of something else", 0, func(send func([]uint32, int, int)) {
			send(like(9*page), 0, 10)
			send(after(33, 7, 8), 0, 10)
		}, Differs, 33},
		{"another vocabulary behind the same BOS", 0, func(send func([]uint32, int, int)) { send(like(1), 0, 10) }, Unseen, 1},
		{"equal", 0, func(send func([]uint32, int, int)) { send(prompt, 0, 10) }, Equal, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := NewWatch(1)
			x := w.Place(&Routed{Tokens: prompt, Size: page, Held: tc.held, Known: tc.held}, 0)
			tc.do(func(ids []uint32, from, to int) { w.Store(0, piece(ids, from, to)) })
			x.End(true, 0)
			got := w.Sweep(int64(settle), always)
			want := Judged{Verdict: tc.want, At: tc.at, Block: -1}
			if tc.at >= 0 {
				want.Block = tc.at / page
			}
			if len(got) != 1 || got[0] != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

// TestPartsInHeld: where the engine held what is in front, the ids part in the first block
// that it is not known to have, and nobody can tell at which id.
func TestPartsInHeld(t *testing.T) {
	prompt := text(1, 10*page+5)
	for _, tc := range []struct {
		name        string
		held, known int
		at          int // where an engine's ids have one more
		size        int // in place of how many
		from        int // block from which it announces
		want        int // block, -1 = not told
	}{
		{"at the begin of what it does not hold", 6, 6, 6*page + 1, 1, 6, 6},
		{"in what it holds", 2, 2, 2*page + 9, 0, 6, 2},
		{"in front of all that is known", 0, 0, 0, 0, 4, 0},
		{"in front of what is expected", 5, 3, 3*page + 3, 0, 6, 3},
		{"in a block that is told of, behind others that are held", 0, 0, 7*page + 5, 1, 6, -1},
		{"in a prompt that begins like a part of it", 2, 2, 0, 5 * page, 0, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := NewWatch(1)
			x := w.Place(&Routed{Tokens: prompt, Size: page, Held: tc.held, Known: tc.known}, 0)
			ids := slices.Concat(prompt[:tc.at], []uint32{7}, prompt[tc.at+tc.size:])
			w.Store(0, piece(ids, tc.from, len(ids)/page))
			x.End(true, 0)
			got := w.Sweep(int64(settle), always)
			if want := (Judged{Verdict: Differs, At: -1, Block: tc.want}); len(got) != 1 || got[0] != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

// FuzzFollow: whatever hangs at whatever, a verdict's place is in the prompt.
func FuzzFollow(f *testing.F) {
	f.Add(uint8(0), []byte{0x00, 0x12, 0x23})
	f.Add(uint8(2), []byte{0x23, 0x34, 0xf5, 0x46})
	prompt := text(1, 8*page)
	f.Fuzz(func(t *testing.T, held uint8, script []byte) {
		w := NewWatch(1)
		x := w.Place(&Routed{Tokens: prompt, Size: page, Held: int(held % 9), Known: int(held % 3)}, 0)
		for i, b := range script { // which block comes, and where it hangs
			which, parent := int(b&15), uint64(b>>4)
			ids := text(2+which, page)
			if which < 14 {
				ids = slices.Clone(prompt[which/2*page:][:page])
				ids[page/2] += uint32(which % 2)
			}
			w.Store(0, []event.Event{{
				Kind: event.Stored, BlockSize: page, Tokens: slices.Concat(ids, prompt[7*page:]), Hashes: []uint64{uint64(i % 8), uint64(i%8 + 8)}, Parent: parent, HasParent: parent > 0,
			}})
		}
		x.End(true, 0)
		for _, j := range w.Sweep(int64(settle), always) {
			if j.At < -1 || j.At >= len(prompt) || j.Block < -1 || j.Block > 8 || j.At >= 0 && j.Block != j.At/page {
				t.Errorf("%+v", j)
			}
		}
	})
}

// TestChains: more prompts than are remembered push the oldest out, and it is not found
// for another.
func TestChains(t *testing.T) {
	var c chains
	if c.endingIn(0) != nil {
		t.Error("found where nothing is")
	}
	for i := range 2*maxChains + 1 {
		c.add(chain{hash: uint64(i), at: i})
	}
	if x := c.endingIn(2 * maxChains); x == nil || x.at != 2*maxChains {
		t.Errorf("the newest is %+v", x)
	}
	if x := c.endingIn(maxChains); x != nil {
		t.Errorf("%+v is remembered", x)
	}
}
