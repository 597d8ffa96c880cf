package feed

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim/freeport"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// stored, removed and cleared are batches of one event, as vLLM writes them.
func stored(hash uint64) []byte {
	b := batchOf(0)
	b = msgp.AppendArrayHeader(b, 6)
	b = msgp.AppendString(b, "BlockStored")
	b = msgp.AppendUint64(msgp.AppendArrayHeader(b, 1), hash)
	b = msgp.AppendNil(b)
	b = msgp.AppendArrayHeader(b, 2)
	b = msgp.AppendUint64(msgp.AppendUint64(b, hash), 7)
	b = msgp.AppendInt(b, 2)
	b = msgp.AppendNil(b)
	return msgp.AppendInt(b, 0)
}

func removed(hash uint64) []byte {
	b := msgp.AppendString(msgp.AppendArrayHeader(batchOf(0), 2), "BlockRemoved")
	b = msgp.AppendUint64(msgp.AppendArrayHeader(b, 1), hash)
	return msgp.AppendInt(b, 0)
}

func cleared() []byte {
	b := msgp.AppendString(msgp.AppendArrayHeader(batchOf(0), 1), "AllBlocksCleared")
	return msgp.AppendInt(b, 0)
}

// batchOf begins a batch of one event; the rank comes behind it.
func batchOf(at float64) []byte {
	return msgp.AppendArrayHeader(msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 3), at), 1)
}

// tape is a sink that writes down what it is told: "+hash", "-hash", "clear" and
// "purge". hold makes it as slow as a busy index.
type tape struct {
	mu   sync.Mutex
	ops  []string
	hold chan struct{} // when not nil, ApplyBatch waits for it
}

func (l *tape) ApplyBatch(_ pod.Member, events []event.Event, _ int64) (inflated bool) {
	if l.hold != nil {
		<-l.hold
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range events {
		switch e := &events[i]; e.Kind {
		case event.Stored:
			l.ops = append(l.ops, fmt.Sprintf("+%d", e.Hashes[0]))
		case event.Removed:
			l.ops = append(l.ops, fmt.Sprintf("-%d", e.Hashes[0]))
		case event.Cleared:
			l.ops = append(l.ops, "clear")
		}
	}
	return false
}

func (l *tape) Purge(pod.Member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops = append(l.ops, "purge")
}

func (l *tape) Restart(m pod.Member) { l.Purge(m) }

func (l *tape) Emptied(pod.Member, int64) {}

func (l *tape) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ops)
}

func (l *tape) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.ops, " ")
}

// rig is one subscriber under test.
type rig struct {
	t    *testing.T
	sub  *subscriber
	sink *tape
	stop func()
}

func subscribe(t *testing.T, from opener, replay string) *rig {
	t.Helper()
	r := &rig{t: t, sink: &tape{}}
	r.sub = newSubscriber("p", 0, 3, from, r.sink, &view.SyncBoard{}, newReplayer(dialer{}), slog.New(slog.DiscardHandler))
	r.sub.wait.max = 200 * time.Millisecond
	if replay != "" {
		r.sub.setReplay("tcp://" + replay)
	}
	return r
}

// start runs the subscriber until the test ends.
func (r *rig) start() *rig {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.sub.run(ctx) }()
	r.stop = sync.OnceFunc(func() { cancel(); <-done })
	r.t.Cleanup(r.stop)
	return r
}

func (r *rig) state() view.SyncState { return r.sub.board.Get(r.sub.member).State }

func (r *rig) waitState(want view.SyncState) {
	r.t.Helper()
	eventually(r.t, "state "+want.String(), func() bool { return r.state() == want }, func() string {
		s := r.sub.board.Get(r.sub.member)
		return fmt.Sprintf("state %v (%s: %s), %v", s, s.Why, s.Detail, r.sink)
	})
}

func (r *rig) waitOps(want string) {
	r.t.Helper()
	eventually(r.t, want, func() bool { return r.sink.String() == want }, r.sink.String)
}

func (r *rig) counters() Counters { return r.sub.count.snapshot() }

// eventually waits for what is to come; got says what is there instead, nil =
// nothing worth telling.
func eventually(t *testing.T, what string, ok func() bool, got func() string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		switch {
		case time.Now().Before(end):
		case got == nil:
			t.Fatalf("never: %s", what)
		default:
			t.Fatalf("never: %s; got %s", what, got())
		}
	}
}

func publisher(t *testing.T, addr string, o zmtp.Options) *zmtp.Publisher {
	t.Helper()
	p, err := zmtp.Listen(addr, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func replayServer(t *testing.T, o zmtp.ReplayOptions) *zmtp.Replay {
	t.Helper()
	r, err := zmtp.ListenReplay("127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func to(p *zmtp.Publisher) opener { return dialled{dialer{}, "tcp://" + p.Addr()} }

// following returns a publisher and a subscriber that is connected to it.
func following(t *testing.T) (*zmtp.Publisher, *rig) {
	t.Helper()
	p := publisher(t, "127.0.0.1:0", zmtp.Options{})
	r := subscribe(t, to(p), "").start()
	subscribed(t, p)
	return p, r
}

func subscribed(t *testing.T, p *zmtp.Publisher) {
	t.Helper()
	eventually(t, "a subscriber", func() bool { return p.Subscribers() > 0 }, func() string { return "none" })
}

// free returns an address nobody listens at, for a publisher that goes and comes back too:
// between the two, a port that the kernel chose may be given to somebody else.
func free(t *testing.T) string {
	t.Helper()
	at, err := freeport.Take("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return at
}
