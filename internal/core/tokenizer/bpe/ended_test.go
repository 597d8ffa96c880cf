package bpe

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRoomIsGivenBack: a prompt that is one long word leaves no room of its size behind
// in a scratch, which lives as long as the process.
func TestRoomIsGivenBack(t *testing.T) {
	spec := randomSpec(t, rand.New(rand.NewPCG(1, 7)), false, false)
	for seed := uint64(2); ; seed++ { // one with a merge of two equal letters
		if _, ok := spec.Vocab.Find([]byte("aa")); ok {
			break
		}
		spec = randomSpec(t, rand.New(rand.NewPCG(seed, 7)), false, false)
	}
	m, err := New(spec)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a", 2*keptNodes)
	sc := NewScratch()
	sc.Begin(t.Context())
	if len(m.AppendPiece(nil, long, sc)) == 0 || sc.Err() != nil {
		t.Fatal(sc.Err())
	}
	if cap(sc.nodes) <= keptNodes {
		t.Fatalf("the piece took room for %d symbols: this tests nothing", cap(sc.nodes))
	}
	sc.End()
	if cap(sc.nodes) > keptNodes || cap(sc.heap) > keptNodes {
		t.Errorf("%d symbols and %d merges are kept", cap(sc.nodes), cap(sc.heap))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sc.Begin(ctx)
	if m.AppendPiece(nil, long, sc); !errors.Is(sc.Err(), context.Canceled) {
		t.Error(sc.Err())
	}
	sc.End()
	if sc.Err() != nil {
		t.Error("a call's end is carried into the next one")
	}
}
