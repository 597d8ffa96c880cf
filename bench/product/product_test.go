package product

import (
	"testing"

	"github.com/eppctl/eppctl/bench/workload"
)

// The two parts that are measured beside each other do their work: the index
// tells what it was given and notices what it was not, the floor finds a prompt's
// own keys and no other's.
func TestProduct(t *testing.T) {
	w := workload.New(64)
	c := &w.Conversations[0]
	p := workload.Pick{}
	h := w.Holder(p)
	ix := New(w, false)
	all := workload.Stretch{Conversation: c, Rank: h.Rank, To: c.Blocks()}
	ix.Store(&all)
	ix.Send()
	ix.Lookup(c.Tokens)
	if got := ix.Depth(h.Rank); got.Depth != c.Blocks() || got.GPU != c.Blocks() || ix.Matches() != 1 || ix.Refused() > 0 {
		t.Errorf("%+v of %d blocks, %d ranks, %d events refused", got, c.Blocks(), ix.Matches(), ix.Refused())
	}
	ix.Remove(h.Rank, false, c.Aliases[c.Blocks()-1:])
	ix.Send()
	ix.Lookup(c.Tokens)
	if got := ix.Depth(h.Rank); got.Depth != c.Blocks()-1 {
		t.Errorf("%+v after the last of %d blocks is gone", got, c.Blocks())
	}
	ix.Remove(h.Rank, false, []uint64{1})
	ix.Send()
	if n := ix.Refused(); n != 1 {
		t.Errorf("%d events refused, want the one of a block nobody stored", n)
	}
	floor := Floor(w)
	if !floor(0, c.Tokens) || floor(0, w.Conversations[1].Tokens) {
		t.Error("the floor does not tell conversation 0 from 1")
	}
}
