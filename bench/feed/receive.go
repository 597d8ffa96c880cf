package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// progress is how far a receiver has come, in messages.
type progress struct {
	done   uint64 // received, or applied to the index
	missed uint64 // known to be lost
}

// receiver is eppctl's own side of the benchmark in a process of its own.
type receiver interface {
	start(endpoints []string) error
	progress() progress
	stop()
}

var receivers = map[string]func() receiver{
	"frames": func() receiver { return &frames{} },
	"index":  func() receiver { return &whole{} },
}

// pollEvery is how often progress is looked at: seldom enough to cost nothing,
// and what it adds to the time is nothing beside a second.
const pollEvery = 10 * time.Millisecond

// receive is the process: [-profile FILE] MODE WARM COUNT ENDPOINT... It prints
// "ready" when it is connected, "warm" after WARM messages and after COUNT more
// what they cost: "cpu_ns wall_ns"; those COUNT are what is profiled. With a COUNT
// of 0 it prints "done missed cpu_ns wall_ns" for every line on stdin instead.
func receive(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("receive", flag.ContinueOnError)
	profile := flags.String("profile", "", "where a CPU profile of COUNT messages goes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	args = flags.Args()
	if len(args) < 4 || receivers[args[0]] == nil {
		return fmt.Errorf("receive %q", args)
	}
	warm, err1 := strconv.ParseUint(args[1], 10, 64)
	count, err2 := strconv.ParseUint(args[2], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	r := receivers[args[0]]()
	if err := r.start(args[3:]); err != nil {
		return err
	}
	defer r.stop()
	fmt.Fprintln(out, "ready")
	await(r, warm)
	cpu, wall := cpuTime(), time.Now()
	fmt.Fprintln(out, "warm")
	if count > 0 {
		end, err := profileTo(*profile)
		if err != nil {
			return err
		}
		await(r, warm+count)
		if err := end(); err != nil {
			return err
		}
		fmt.Fprintln(out, cpuTime()-cpu, time.Since(wall).Nanoseconds())
		return nil
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		p := r.progress()
		fmt.Fprintln(out, p.done, p.missed, cpuTime()-cpu, time.Since(wall).Nanoseconds())
	}
	return nil
}

// profileTo begins a CPU profile; "" = none.
func profileTo(path string) (end func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() error { pprof.StopCPUProfile(); return f.Close() }, nil
}

func await(r receiver, n uint64) {
	for r.progress().done < n {
		time.Sleep(pollEvery)
	}
}

// cpuTime is this process's, user and system, in ns.
func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// frames receives and takes the frames apart, as libzmq's subscriber does.
type frames struct {
	sources []feed.FrameSource
	n       atomic.Uint64
}

func (f *frames) start(endpoints []string) error {
	for _, at := range endpoints {
		src, err := feed.Dial(context.Background(), at, feed.Limits{})
		if err != nil {
			return err
		}
		f.sources = append(f.sources, src)
		go func() {
			for {
				parts, err := src.Recv()
				if err != nil {
					return
				}
				if parts == nil {
					continue
				}
				if _, _, _, err := event.ParseFrames(parts); err == nil {
					f.n.Add(1)
				}
			}
		}()
	}
	return nil
}

func (f *frames) progress() progress { return progress{done: f.n.Load()} }

func (f *frames) stop() {
	for _, s := range f.sources {
		s.Close()
	}
}

// whole is the feed and the index as serve runs them. The pods have no HTTP side.
type whole struct {
	feed  *feed.Feed
	fleet *view.Fleet
}

var errNoHTTP = errors.New("the publishers of the benchmark have no HTTP side")

func (w *whole) start(endpoints []string) error {
	w.fleet = &view.Fleet{
		Pods: pod.NewTable(), Index: index.New(index.Options{Seed: 1}), Telemetry: &telemetry.Board{},
		Sync: &view.SyncBoard{}, Load: view.NewLedger(),
	}
	w.feed = feed.New(w.fleet, feed.Options{
		ScrapeInterval: time.Hour,
		HTTP: &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, errNoHTTP
		}}},
	})
	specs := make([]pod.Spec, len(endpoints))
	for i, at := range endpoints {
		specs[i] = pod.Spec{
			Name: fmt.Sprint(i), Address: "127.0.0.1:" + fmt.Sprint(1+i), Engine: pod.EngineVLLM, Model: "m", Events: []string{at},
		}
	}
	w.feed.Apply(specs)
	for w.connected() < len(endpoints) {
		time.Sleep(pollEvery)
	}
	return nil
}

func (w *whole) connected() (n int) {
	for _, p := range w.fleet.Pods.Snapshot().Pods {
		if w.fleet.Sync.Get(p.Members[0]).Connected {
			n++
		}
	}
	return n
}

// progress counts events: every batch has one.
func (w *whole) progress() (p progress) {
	for _, c := range w.feed.Counters() {
		p.done += c.Stored + c.Cleared
		p.missed += c.Missed
	}
	return p
}

func (w *whole) stop() { w.feed.Close() }
