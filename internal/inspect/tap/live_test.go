package tap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/recorder"
	"github.com/eppctl/eppctl/internal/sim/freeport"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
	"github.com/eppctl/eppctl/internal/testdata"
)

// live is a tap of engines that runs until the test ends or end is called.
type live struct {
	t      *testing.T
	stdout interface {
		Write([]byte) (int, error)
		String() string
	}
	stderr testdata.Buffer
	end    func() error
}

func start(t *testing.T, c *Command, stdout *stuck) *live {
	t.Helper()
	l := &live{t: t, stdout: &testdata.Buffer{}}
	if stdout != nil {
		l.stdout = stdout
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, &out.Streams{Out: l.stdout, Err: &l.stderr}) }()
	l.end = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		if err := l.end(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// events are the events shown so far.
func (l *live) events() (list []Event) {
	for line := range strings.Lines(l.stdout.String()) {
		var e Event
		if json.Unmarshal([]byte(line), &e) == nil && e.Kind == "Event" {
			list = append(list, e)
		}
	}
	return list
}

func eventually(t *testing.T, what string, ok func() bool, got func() string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s; got %s", what, got())
		}
	}
}

func publisher(t *testing.T) *zmtp.Publisher {
	t.Helper()
	p, err := zmtp.Listen("127.0.0.1:0", zmtp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func subscribed(t *testing.T, p *zmtp.Publisher) {
	t.Helper()
	eventually(t, "subscribed", func() bool { return p.Subscribers() == 1 }, func() string { return "" })
}

func payload(hash uint64) []byte { return message(podA, 0, store(hash, 1, 2)).Parts[2] }

// TAP-09: a port that accepts and stays silent holds up nobody.
func TestSilentPort(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var tries atomic.Int32
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			tries.Add(1)
		}
	}()
	p := publisher(t)
	l := start(t, &Command{Format: "jsonl", Source: &Engines{
		Publishers: []feed.Publisher{{Endpoint: silent.Addr().String()}, {Endpoint: p.Addr()}}, Limits: feed.Limits{Handshake: 500 * time.Millisecond},
	}}, nil)
	subscribed(t, p)
	p.Send("", 0, payload(1))
	eventually(t, "the event of the other", func() bool { return len(l.events()) == 1 }, l.stdout.String)
	eventually(t, "a word about the silent one", func() bool {
		return strings.Contains(l.stdout.String(), `"why":"handshake: no answer in time"`)
	}, l.stdout.String)
	before := tries.Load()
	eventually(t, "more attempts", func() bool { return tries.Load() >= before+3 }, l.stdout.String)
	told := 0 // of the other a slow machine may tell too
	for line := range strings.Lines(l.stdout.String()) {
		if strings.Contains(line, `"notice":"down"`) && strings.Contains(line, silent.Addr().String()) {
			told++
		}
	}
	if told != 1 || strings.Contains(l.stderr.String(), "down") {
		t.Errorf("one reason is told %d times; stderr %s", told, &l.stderr)
	}
	if err := l.end(); err != nil || !strings.Contains(l.stderr.String(), `"pods_connected":1,"pods_ever_connected":1,"pods_wanted":2`) {
		t.Errorf("TAP-09: %v %s", err, &l.stderr)
	}
}

// TAP-08
func TestListens(t *testing.T) {
	at, err := freeport.Take("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	l := start(t, &Command{Format: "jsonl", Source: &Engines{Listen: []string{at}}}, nil)
	p := zmtp.Dial(at, zmtp.Options{})
	defer p.Close()
	subscribed(t, p)
	p.Send("", 0, payload(1))
	eventually(t, "TAP-08: an event", func() bool { return len(l.events()) == 1 }, l.stdout.String)
}

// TAP-07: a reader that stands still costs neither memory nor the engine anything,
// and is told what it missed.
func TestSlowReader(t *testing.T) {
	const sent = 20_000
	// Its own queue holds all, or a slow machine would have it drop some.
	p, err := zmtp.Listen("127.0.0.1:0", zmtp.Options{Queue: sent})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := &stuck{let: make(chan struct{})}
	l := start(t, &Command{Format: "jsonl", Source: &Engines{
		Publishers: []feed.Publisher{{Endpoint: p.Addr()}}, Queue: recording.Limits{Records: 256},
	}}, s)
	subscribed(t, p)
	body := payload(1)
	for seq := range uint64(sent) {
		p.Send("", seq, body)
	}
	if n := p.Dropped(); n != 0 {
		t.Fatalf("TAP-07: the publisher dropped %d", n)
	}
	close(s.let)
	// Looked for as text: to read all that was shown again and again keeps it from coming.
	eventually(t, "TAP-07: the last event", func() bool {
		text := l.stdout.String()
		return strings.Contains(text, fmt.Sprintf(`"seq":%d,`, sent-1)) && strings.HasSuffix(text, "\n")
	}, func() string { return fmt.Sprintf("%d events", len(l.events())) })
	var dropped uint64
	for line := range strings.Lines(l.stdout.String()) {
		var n Notice
		if json.Unmarshal([]byte(line), &n) == nil && n.Notice == recording.Dropped {
			dropped += n.Count
		}
	}
	if n := len(l.events()); dropped == 0 || n+int(dropped) != sent {
		t.Errorf("TAP-07: %d events, %d dropped of %d", n, dropped, sent)
	}
	if strings.Contains(l.stdout.String(), `"notice":"gap"`) {
		t.Error("TAP-07: what tap left out is shown as the engine's loss")
	}
}

// REC-01: what is recorded of a live stream is what was sent, byte for byte.
func TestLiveRecording(t *testing.T) {
	p := publisher(t)
	path := t.TempDir() + "/a.eptap"
	report := make(chan struct{})
	l := start(t, &Command{Quiet: true, Report: report, Source: &Engines{Publishers: []feed.Publisher{{Endpoint: p.Addr()}}}, Write: Write{Target: recorder.Target{Path: path}}}, nil)
	subscribed(t, p)
	sent := [][][]byte{{[]byte("t"), {0, 0, 0, 0, 0, 0, 0, 0}, payload(1)}, {{1}}, {{}, {1, 2, 3, 4}, {5}, {6}}, {{}, {0, 0, 0, 0, 0, 0, 0, 1}, []byte("no msgpack")}}
	for _, m := range sent {
		p.SendFrames(m...)
	}
	p.SendFrames([]byte{}, []byte{0, 0, 0, 0, 0, 0, 0, 2}, payload(2))
	eventually(t, "the last message", func() bool {
		report <- struct{}{}
		return strings.Contains(l.stderr.String(), fmt.Sprintf(" %d batches", len(sent)+1))
	}, l.stderr.String)
	if err := l.end(); err != nil {
		t.Fatal(err)
	}
	var got [][][]byte
	for _, r := range read(t, path) {
		if r.Type == recording.TypeFrame {
			got = append(got, r.Parts)
		}
	}
	if len(got) != len(sent)+1 {
		t.Fatalf("REC-01: %d of %d messages", len(got), len(sent))
	}
	for i := range sent {
		if !bytes.Equal(bytes.Join(got[i], []byte{0xff}), bytes.Join(sent[i], []byte{0xff})) {
			t.Errorf("REC-01: message %d: %x, sent %x", i, got[i], sent[i])
		}
	}
}

// A replay that was asked for and failed is no success.
func TestFailedReplay(t *testing.T) {
	p := publisher(t)
	dead := testdata.Deaf(t)
	var stdout, stderr testdata.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- (&Command{Format: "jsonl", Demand: true, Source: &Engines{
			Replay: true, Publishers: []feed.Publisher{{Endpoint: p.Addr(), Replay: dead}},
		}}).Run(ctx, &out.Streams{Out: &stdout, Err: &stderr})
	}()
	subscribed(t, p)
	p.Send("", 7, payload(1))
	eventually(t, "a failed replay", func() bool { return strings.Contains(stdout.String(), `"outcome":"failed"`) }, stdout.String)
	cancel()
	var own *inspect.Error
	if err := <-ended; !errors.As(err, &own) || own.Kind != inspect.Incomplete || !strings.Contains(own.Why, p.Addr()) {
		t.Errorf("%v", err)
	}
}
