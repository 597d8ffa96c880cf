package feed

import (
	"slices"
	"testing"
	"time"
)

func TestQueueMarksDrops(t *testing.T) {
	q := newQueue()
	q.grace = time.Millisecond
	ctx := t.Context()
	var puts []bool
	for i := range uint64(queueBatches + 3) {
		puts = append(puts, q.put(ctx, item{seq: i}))
	}
	if slices.Index(puts, false) != queueBatches || slices.Contains(puts[queueBatches:], true) {
		t.Errorf("kept %d of %d", slices.Index(puts, false), len(puts))
	}
	q.put(ctx, item{kind: itemDown})
	for i := range queueBatches {
		it, ok := q.take()
		want := item{seq: uint64(i)}
		if i == queueBatches-1 {
			want.dropped, want.last = 3, queueBatches+2
		}
		if !ok || it.seq != want.seq || it.dropped != want.dropped || it.last != want.last {
			t.Fatalf("item %d: %+v, want %+v", i, it, want)
		}
	}
	if it, ok := q.take(); !ok || it.kind != itemDown {
		t.Errorf("%+v: the end of the connection was dropped", it)
	}
	if _, ok := q.take(); ok || q.bytes != 0 {
		t.Errorf("%d bytes left", q.bytes)
	}
	// By bytes, but never less than one.
	if !q.put(ctx, item{payload: make([]byte, queueBytes+1)}) || q.put(ctx, item{payload: []byte{1}}) {
		t.Error("bound by bytes")
	}
}
