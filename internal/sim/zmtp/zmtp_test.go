package zmtp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// libzmq starts a real subscriber and returns its output, line by line.
func libzmq(t *testing.T, args ...string) *bufio.Scanner {
	t.Helper()
	if out, err := exec.Command("python3", "-c", "import zmq").CombinedOutput(); err != nil {
		t.Fatalf("this test needs python3 with pyzmq (pip install pyzmq): %v\n%s", err, out)
	}
	cmd := exec.Command("python3", append([]string{"testdata/subscriber.py"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("subscriber.py %v: %v\n%s", args, err, &stderr)
		}
	})
	return bufio.NewScanner(out)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

func want(t *testing.T, sc *bufio.Scanner, lines ...string) {
	t.Helper()
	for _, w := range lines {
		if !sc.Scan() {
			t.Fatalf("no line, want %q", w)
		}
		if sc.Text() != w {
			t.Fatalf("line %q, want %q", sc.Text(), w)
		}
	}
}

func TestPublisherToLibzmq(t *testing.T) {
	p, err := Listen("127.0.0.1:0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sc := libzmq(t, "connect", p.Addr(), "kv@", "3")
	eventually(t, "subscribed", func() bool { return p.Subscribers() == 1 })
	p.Send("other", 0, []byte("x"))
	p.Send("kv@a", 7, []byte("one"))
	// The subscriber heartbeats; it would have cut us by then.
	eventually(t, "pinged", func() bool { return p.Pings() >= 5 })
	p.Send("kv@b", 1<<40, []byte(strings.Repeat("z", 300)))
	p.Send("kv@b", 9, nil)
	want(t, sc,
		"6b764061 0000000000000007 6f6e65",
		"6b764062 0000010000000000 "+strings.Repeat("7a", 300),
		"6b764062 0000000000000009 -")
}

func TestDiallingPublisherToLibzmq(t *testing.T) {
	sc := libzmq(t, "bind", "-", "", "2")
	if !sc.Scan() {
		t.Fatal("no port")
	}
	var port int
	if _, err := fmt.Sscanf(sc.Text(), "port %d", &port); err != nil {
		t.Fatal(err)
	}
	p := Dial(fmt.Sprintf("127.0.0.1:%d", port), Options{})
	defer p.Close()
	eventually(t, "subscribed", func() bool { return p.Subscribers() == 1 })
	p.Send("", 0, []byte("a"))
	p.Send("t", 1, []byte("b"))
	want(t, sc, "- 0000000000000000 61", "74 0000000000000001 62")
}

func TestReplayToLibzmq(t *testing.T) {
	for _, bare := range []bool{false, true} {
		t.Run(fmt.Sprintf("bare=%v", bare), func(t *testing.T) {
			r, err := ListenReplay("127.0.0.1:0", ReplayOptions{Size: 3, Bare: bare})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			for i := range uint64(5) {
				r.Record(i, "t", []byte{byte('a' + i)})
			}
			topic, end := " 74", " -"
			if bare {
				topic, end = "", ""
			}
			sc := libzmq(t, "replay", r.Addr(), "0")
			want(t, sc,
				"-"+topic+" 0000000000000002 63",
				"-"+topic+" 0000000000000003 64",
				"-"+topic+" 0000000000000004 65",
				"-"+end+" ffffffffffffffff -")
			sc = libzmq(t, "replay", r.Addr(), "4")
			want(t, sc, "-"+topic+" 0000000000000004 65", "-"+end+" ffffffffffffffff -")
			sc = libzmq(t, "replay", r.Addr(), "9")
			want(t, sc, "-"+end+" ffffffffffffffff -")
		})
	}
}

// The request needs the empty delimiter frame.
func TestReplayIgnoresRequestWithoutDelimiter(t *testing.T) {
	t.Run("ZF-33 no delimiter, no answer", func(t *testing.T) {
		r, err := ListenReplay("127.0.0.1:0", ReplayOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		nc, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		c, err := Handshake(nc, "DEALER", 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Send(make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "ignored", func() bool { return r.Ignored() == 1 })
		if err := c.Send(nil, make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		if _, frames, err := c.Recv(); err != nil || len(frames) != 4 {
			t.Fatalf("frames %q, error %v: want the end marker and nothing before it", frames, err)
		}
	})
}

func TestSlowSubscriberLosesMessages(t *testing.T) {
	p, err := Listen("127.0.0.1:0", Options{Queue: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	nc, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c, err := Handshake(nc, "SUB", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Send([]byte{1}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "subscribed", func() bool { return p.Subscribers() == 1 })
	payload := make([]byte, 1<<20)
	for i := range uint64(200) { // more than any socket buffer holds
		p.Send("", i, payload)
	}
	if p.Dropped() == 0 {
		t.Fatal("a subscriber that does not read lost nothing")
	}
}

// A connection that speaks something else must not disturb the others.
func TestHostileConnections(t *testing.T) {
	p, err := Listen("127.0.0.1:0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, hello := range [][]byte{
		[]byte("GET / HTTP/1.1\r\n\r\n" + strings.Repeat("x", 64)),
		append(Greeting(1), 4, 0),
		append(Greeting(1), 6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		append(Greeting(1), Ready("PUB")...),
		append(Greeting(1), AppendCommand(nil, "READY", []byte("\x0bSocket-Type\xff\xff\xff\xff"))...),
	} {
		nc, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		nc.Write(hello)
		nc.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, nc); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("%q: connection stays open", hello)
		}
		nc.Close()
	}
}
