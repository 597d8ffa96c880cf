package feed

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/view"
)

// libzmq is a publisher process made with real libzmq.
type libzmq struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	kill func()
	lim  Limits // of connections to it
}

func startLibzmq(t *testing.T, args ...string) *libzmq {
	t.Helper()
	if out, err := exec.Command("python3", "-c", "import zmq").CombinedOutput(); err != nil {
		t.Fatalf("this test needs python3 with pyzmq (pip install pyzmq): %v\n%s", err, out)
	}
	p := &libzmq{t: t, cmd: exec.Command("python3", append([]string{"testdata/publisher.py"}, args...)...)}
	var stderr strings.Builder
	p.cmd.Stderr = &stderr
	in, err1 := p.cmd.StdinPipe()
	out, err2 := p.cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewScanner(out)
	p.kill = sync.OnceFunc(func() { // SIGKILL: no goodbye on the sockets
		p.cmd.Process.Kill()
		p.cmd.Wait()
		if t.Failed() && stderr.Len() > 0 {
			t.Logf("publisher.py: %s", &stderr)
		}
	})
	t.Cleanup(p.kill)
	return p
}

// do gives a command and returns the answer.
func (p *libzmq) do(format string, args ...any) string {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		p.t.Fatal(err)
	}
	if !p.out.Scan() {
		p.t.Fatalf("publisher.py ended at %q", fmt.Sprintf(format, args...))
	}
	return p.out.Text()
}

func (p *libzmq) send(seq uint64, payload []byte) { p.do("send - %d %x", seq, payload) }

func (p *libzmq) dial() opener {
	addr := strings.TrimPrefix(p.do("addr"), "addr ")
	return dialled{dialer{lim: p.lim}, "tcp://" + addr}
}

// A publisher process is killed and started again on its port.
func TestLibzmqKilledAndRestarted(t *testing.T) {
	addr := free(t)
	p := startLibzmq(t, "bind", addr)
	r := subscribe(t, p.dial(), "").start()
	p.do("subscribed")
	p.send(0, stored(1))
	p.send(1, stored(2))
	r.waitOps("+1 +2")
	p.kill()
	r.waitState(view.Connecting)
	p = startLibzmq(t, "bind", addr)
	p.do("subscribed")
	p.send(0, stored(3))
	r.waitOps("+1 +2 purge +3")
	r.waitState(view.Live)
	if c := r.counters(); c.Peer != "3.1" || c.Connections != 2 || c.Purges[purgeReconnect] != 1 {
		t.Errorf("%+v", c)
	}
}

// libzmq cuts a subscriber that does not answer its PINGs, and answers ours while
// it is idle.
func TestLibzmqHeartbeat(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		ping time.Duration
	}{
		// 30 PINGs take 9 s, its patience is 3 s: on a machine that is as busy as
		// not to run us for that long nothing can be told.
		{"ZF-07 PINGs of libzmq", []string{"heartbeat", "300", "patience", "3000"}, time.Minute},
		{"ZF-08 an idle libzmq", nil, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := startLibzmq(t, append([]string{"bind", "127.0.0.1:*"}, c.args...)...)
			p.lim = patient
			p.lim.Ping = c.ping
			r := subscribe(t, p.dial(), "").start()
			p.do("subscribed")
			least := uint64(10)
			if len(c.args) > 0 {
				least = 30
			}
			eventually(t, "PINGs or PONGs", func() bool { return r.counters().Commands >= least }, func() string { return fmt.Sprint(r.counters()) })
			p.send(0, stored(1))
			r.waitOps("+1")
			if c := r.counters(); c.Connections != 1 || len(c.Faults) != 0 {
				t.Errorf("%+v", c)
			}
		})
	}
}

// The ROUTER loses replies above its high-water mark, the end marker with them.
func TestLibzmqReplay(t *testing.T) {
	const n = 10_000
	for _, size := range []int{500, 5000} {
		t.Run(fmt.Sprintf("10000 batches of %d bytes", size), func(t *testing.T) {
			replay := free(t)
			p := startLibzmq(t, "bind", "127.0.0.1:*", "replay", replay)
			payload := append(stored(1), make([]byte, size)...) // the decoder leaves what is behind a batch
			p.do("record %d %x", n, payload)
			r := subscribe(t, p.dial(), replay).start()
			p.do("subscribed")
			r.waitState(view.Live)
			p.send(n, stored(2))
			eventually(t, "the live batch", func() bool { return strings.HasSuffix(r.sink.String(), " +2") }, func() string { return fmt.Sprint(r.counters()) })
			if got := strings.Count(r.sink.String(), "+1"); got != n {
				t.Errorf("%d of %d batches", got, n)
			}
			if c := r.counters(); c.Lost != 0 || c.Replays["filled"] != 1 {
				t.Errorf("%+v", c)
			} else {
				t.Logf("%d rounds", c.ReplayRounds)
			}
		})
	}
}

// A publisher that connects to us, closes and comes back.
func TestLibzmqDialsIn(t *testing.T) {
	g, refused := gateFor(t, Limits{})
	c := claimOf(t, g, "p", "127.0.0.1:8000", 1)
	r := subscribe(t, c.ranks[0], "").start()
	p := startLibzmq(t, "connect", g.ln.Addr().String())
	p.do("subscribed")
	p.send(0, stored(1))
	r.waitOps("+1")
	p.kill()
	p = startLibzmq(t, "connect", g.ln.Addr().String())
	p.do("subscribed")
	p.send(0, stored(2))
	r.waitOps("+1 purge +2")
	if len(refused()) != 0 {
		t.Error(refused())
	}
}

// TAP-08 and TAP-04 with libzmq: a publisher that binds, with a replay port, and one
// that connects to us.
func TestLibzmqWatched(t *testing.T) {
	replay := free(t)
	p := startLibzmq(t, "bind", "127.0.0.1:*", "replay", replay)
	p.do("record 3 %x", stored(1))
	addr := strings.TrimPrefix(p.do("addr"), "addr ")
	at := free(t)
	l := watch(t, &Watch{Publishers: []Publisher{{Endpoint: addr, Replay: replay}}, Listen: []string{at}})
	l.wait("+ r0 r1 r2 filled3")
	p.do("subscribed")
	p.send(3, stored(4))
	l.wait("+ r0 r1 r2 filled3 3")
	p = startLibzmq(t, "connect", at)
	p.do("subscribed")
	p.send(7, stored(1))
	l.wait("+ r0 r1 r2 filled3 3 + 7")
}
