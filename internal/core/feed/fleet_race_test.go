package feed

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"github.com/eppctl/eppctl/internal/core/block"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// O-129: a pod comes and goes a thousand times while its engine publishes. Nobody
// holds a block once it has gone.
func TestRemovedWhileStoring(t *testing.T) {
	p := publisher(t, "127.0.0.1:0", zmtp.Options{})
	f, fleet := startFeed(t, Options{})
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := uint64(0); ; i++ {
			select {
			case <-stop:
				return
			default:
				p.Send("", i, stored(i))
			}
		}
	}()
	spec := pod.Spec{Name: "p", Address: free(t), Engine: pod.EngineVLLM, Model: "m", Events: []string{"tcp://" + p.Addr()}}
	held := 0
	for i := range 1000 {
		f.Apply([]pod.Spec{spec})
		if i%100 == 0 { // in between it may go before it is connected
			eventually(t, "blocks", func() bool { return fleet.Index.Stats().Blocks > 0 }, func() string { return fmt.Sprint(f.Counters()) })
			held++
		}
		f.Apply(nil)
	}
	eventually(t, "nobody holds a block", func() bool {
		return len(fleet.Pods.Snapshot().Pods) == 0 && fleet.Index.Stats().Blocks == 0
	}, func() string { return fmt.Sprintf("%+v", fleet.Index.Stats()) })
	close(stop)
	<-done
	if n := fleet.Index.Stats().Blocks; n != 0 || held != 10 {
		t.Errorf("%d blocks without an owner, held %d times", n, held)
	}
}

// O-09: an engine restarts and names its blocks by numbers where it named them by
// byte strings. The same blocks are found, and the new names remove them.
func TestHashFormChangesAtRestart(t *testing.T) {
	const m = pod.Member(3)
	ix := index.New(index.Options{})
	ix.Register(m, index.Owner{Model: "m", Engine: pod.EngineVLLM})
	tokens := countTo(100, 16)
	store := func(hash func([]byte) []byte) []byte {
		b := msgp.AppendString(msgp.AppendArrayHeader(batchOf(0), 6), "BlockStored")
		b = msgp.AppendNil(hash(msgp.AppendArrayHeader(b, 1)))
		b = msgp.AppendArrayHeader(b, 16)
		for _, id := range tokens {
			b = msgp.AppendUint32(b, id)
		}
		return msgp.AppendInt(msgp.AppendNil(msgp.AppendInt(b, 16)), 0)
	}
	digest := func(b []byte) []byte { return msgp.AppendBytes(b, append(make([]byte, 31), 9)) }
	number := func(b []byte) []byte { return msgp.AppendUint64(b, 77) }
	depth := func() int {
		var out index.Result
		ix.Lookup(&block.Prompt{Model: "m", Tokens: tokens, Cut: -1}, &out)
		for _, x := range out.Matches {
			if x.Member == m {
				return int(x.Depth)
			}
		}
		return 0
	}
	p := publisher(t, free(t), zmtp.Options{})
	r := subscribe(t, to(p), "")
	r.sub = newSubscriber("p", 0, m, to(p), ix, &view.SyncBoard{}, newReplayer(dialer{}), slog.New(slog.DiscardHandler))
	r.start()
	is := func(want int) {
		t.Helper()
		eventually(t, fmt.Sprint("depth ", want), func() bool { return depth() == want }, func() string { return fmt.Sprint(depth(), r.counters()) })
	}
	subscribed(t, p)
	p.Send("", 0, store(digest))
	is(1)
	p.Close()
	p = publisher(t, p.Addr(), zmtp.Options{})
	subscribed(t, p)
	is(0) // the restart
	p.Send("", 0, store(number))
	is(1)
	p.Send("", 1, removed(77))
	is(0)
}
