package tap

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/recorder"
	"github.com/eppctl/eppctl/internal/testdata"
)

// stuck is a stdout whose reader stands still until it is let go.
type stuck struct {
	testdata.Buffer
	let   chan struct{}
	holds atomic.Bool // a write is stuck
}

func (s *stuck) Write(b []byte) (int, error) {
	s.holds.Store(true)
	<-s.let
	return s.Buffer.Write(b)
}

// UX-17: a reader that has seen enough ends tap, with its account.
func TestClosedPipe(t *testing.T) {
	var stderr testdata.Buffer
	s := &out.Streams{Out: broken{}, Err: &stderr}
	err := (&Command{Source: endless{}, Format: "table"}).Run(t.Context(), s)
	if !errors.Is(err, syscall.EPIPE) || !strings.Contains(stderr.String(), "tap: ") {
		t.Errorf("UX-17: %v, %s", err, &stderr)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// endless sends until nobody wants more.
type endless struct{}

func (endless) String() string { return "endless" }

func (endless) Run(ctx context.Context, emit func([]*recording.Record) error) error {
	for seq := uint64(0); ; seq++ {
		if err := emit([]*recording.Record{message(podA, seq, store(seq, 1, 2))}); err != nil {
			return err
		}
	}
}

// UX-18: an end from outside is a good end, even when stdout stands still.
func TestEndsWhileStuck(t *testing.T) {
	s := &stuck{let: make(chan struct{})}
	var stderr testdata.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	path := filepath.Join(t.TempDir(), "a.eptap")
	ended := make(chan error, 1)
	go func() {
		ended <- (&Command{Source: endless{}, Format: "jsonl", Write: Write{Target: recorder.Target{Path: path}}}).Run(ctx, &out.Streams{Out: s, Err: &stderr})
	}()
	eventually(t, "some output is stuck", s.holds.Load, stderr.String)
	cancel()
	if err := <-ended; err != nil || !strings.Contains(stderr.String(), `"kind":"Account"`) {
		t.Errorf("UX-18: %v, %s", err, &stderr)
	}
	if l := read(t, path); l[len(l)-1].Type != recording.TypeAccount {
		t.Error("UX-18: the recording has no account")
	}
	close(s.let)
}

// UX-19: the account on request, the stream goes on.
func TestReportsOnRequest(t *testing.T) {
	report, flush := make(chan struct{}), make(chan struct{})
	var o, e testdata.Buffer
	path := filepath.Join(t.TempDir(), "a.eptap")
	ctx, cancel := context.WithCancel(t.Context())
	records := make(chan *recording.Record)
	ended := make(chan error, 1)
	go func() {
		c := &Command{Source: fed(records), Format: "table", Report: report, Flush: flush, Write: Write{Target: recorder.Target{Path: path}}}
		ended <- c.Run(ctx, &out.Streams{Out: &o, Err: &e})
	}()
	records <- message(podA, 1, store(1, 1))
	report <- struct{}{}
	records <- message(podA, 2, store(1, 1))
	records <- message(podA, 3, store(1, 1)) // the source takes it when the second is dealt with
	flush <- struct{}{}
	report <- struct{}{} // comes behind the flush
	if n := strings.Count(e.String(), "matched the filter"); n < 1 {
		t.Errorf("UX-19: %d accounts: %s", n, &e)
	}
	b, err := os.ReadFile(path)
	if n := bytes.Count(b, []byte("kv@")); err != nil || n < 2 {
		t.Errorf("%d messages flushed, %v", n, err)
	}
	records <- message(podA, 4, store(1, 1))
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := strings.Count(e.String(), "matched the filter"); n != 3 {
		t.Errorf("UX-19: %d accounts: %s", n, &e)
	}
}

// fed is a source one record at a time.
type fed chan *recording.Record

func (fed) String() string { return "fed" }

func (f fed) Run(ctx context.Context, emit func([]*recording.Record) error) error {
	for {
		select {
		case r := <-f:
			if err := emit([]*recording.Record{r}); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}
