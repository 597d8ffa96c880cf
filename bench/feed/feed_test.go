package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/sim/zmtp"
)

// Each batch of a workload has the size its name says and is one event that the
// decoder reads in full.
func TestBatches(t *testing.T) {
	for name, size := range map[string]int{"200B": 200, "2kB": 2000, "60kB": 60_000} {
		w := find(t, name)
		var d event.Decoder
		var b event.Batch
		share := w.share(3)
		for i, payload := range share {
			if err := d.Decode(payload, &b); err != nil || len(b.Events) != 1 || len(b.Skipped) > 0 || b.Trailing > 0 {
				t.Fatalf("%s, batch %d: %v, %+v", name, i, err, b)
			}
			e := &b.Events[0]
			if i == len(share)-1 {
				if e.Kind != event.Cleared {
					t.Errorf("%s ends with %v", name, e.Kind)
				}
				continue
			}
			if off := math.Abs(float64(len(payload))/float64(size) - 1); off > 0.06 {
				t.Errorf("%s: batch %d has %d bytes", name, i, len(payload))
			}
			if e.Kind != event.Stored || len(e.Hashes) != w.blocks || len(e.Tokens) != w.blocks*blockSize || e.HasParent {
				t.Errorf("%s: batch %d: %+v", name, i, e)
			}
		}
		if bytes.Equal(share[0], share[1]) || bytes.Equal(share[0], w.share(4)[0]) {
			t.Errorf("%s: batches repeat", name)
		}
	}
}

// Both receivers of ours count what a publisher sends.
func TestReceive(t *testing.T) {
	const warm, count = 30, 40
	w := find(t, "200B")
	for mode := range receivers {
		t.Run(mode, func(t *testing.T) {
			pub, err := zmtp.Listen("127.0.0.1:0", zmtp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer pub.Close()
			r, out := io.Pipe()
			failed := make(chan error, 1)
			go func() {
				failed <- receive([]string{mode, fmt.Sprint(warm), fmt.Sprint(count), "tcp://" + pub.Addr()}, strings.NewReader(""), out)
				out.Close()
			}()
			lines := bufio.NewScanner(r)
			next := func(want string) {
				if !lines.Scan() || want != "" && lines.Text() != want {
					t.Fatalf("%q, want %q", lines.Text(), want)
				}
			}
			share := w.share(0)
			var seq uint64
			send := func(n int) {
				for range n {
					pub.Send("kv", seq, share[seq%uint64(len(share))])
					seq++
				}
			}
			next("ready")
			for pub.Subscribers() == 0 { // the connection is there, its subscription may still come
			}
			send(warm)
			next("warm")
			send(count)
			next("")
			var cpu, wall int64
			if _, err := fmt.Sscan(lines.Text(), &cpu, &wall); err != nil || cpu <= 0 || wall <= 0 {
				t.Errorf("%q: %v", lines.Text(), err)
			}
			if err := <-failed; err != nil {
				t.Error(err)
			}
		})
	}
}

func find(t *testing.T, name string) *workload {
	for i := range workloads {
		if workloads[i].name == name {
			return &workloads[i]
		}
	}
	t.Fatalf("no workload %q", name)
	return nil
}
