package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// publishers are the sizes of the fleet.
var publishers = []int{1, 64, 256}

// accounted is the workload of the run in which messages are lost.
const accounted = "2kB"

// bench is a whole run.
type bench struct {
	libzmq    libzmq
	self      string // this program
	dir       string
	workloads []workload
	profileTo string               // where what a receiver measures is profiled to, "" = nowhere
	values    map[string][]float64 // by row name and measure
}

func newBench(dir, only string, scale float64) (*bench, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b := &bench{self: self, dir: dir, values: map[string][]float64{}}
	for _, w := range workloads {
		if only == "" || only == w.name {
			w.count = int(float64(w.count) * scale)
			b.workloads = append(b.workloads, w)
		}
	}
	if len(b.workloads) == 0 {
		return nil, fmt.Errorf("no size %q", only)
	}
	var version string
	if b.libzmq, version, err = buildLibzmq(dir); err != nil {
		return nil, err
	}
	fmt.Fprintln(os.Stderr, "libzmq", version)
	return b, nil
}

// profile measures the whole path once, of one size, and writes where its time goes.
func (b *bench) profile(path string) error {
	b.profileTo = path
	w := &b.workloads[0]
	if err := b.cost(w, profiled, "index"); err != nil {
		return err
	}
	fmt.Printf("%s, %d publishers: %.1f µs CPU per message\n", w.name, profiled, b.values[key(w.name, profiled, "index")][0])
	return nil
}

// profiled is the number of publishers of a profile.
const profiled = 64

// subscribers are what is measured, in the order of a round.
var subscribers = []string{"libzmq", "frames", "index"}

// round measures everything once. What is compared runs next to each other.
func (b *bench) round() error {
	for _, w := range b.workloads {
		for _, n := range publishers {
			for _, sub := range subscribers {
				if err := b.cost(&w, n, sub); err != nil {
					return fmt.Errorf("%s, %d publishers, %s: %w", w.name, n, sub, err)
				}
			}
			if w.name == accounted {
				if err := b.account(&w, n); err != nil {
					return fmt.Errorf("losses, %d publishers: %w", n, err)
				}
			}
		}
	}
	return nil
}

func (b *bench) note(w *workload, n int, measure string, value float64) {
	key := key(w.name, n, measure)
	b.values[key] = append(b.values[key], value)
}

func key(size string, n int, measure string) string {
	return fmt.Sprintf("%s_%dpub_%s", size, n, measure)
}

// publish starts n publishers of a workload.
func (b *bench) publish(w *workload, n int, lossless bool) (publisher, error) {
	path := filepath.Join(b.dir, fmt.Sprintf("%s-%d", w.name, n))
	if _, err := os.Stat(path); err != nil {
		if err := w.write(path, n); err != nil {
			return publisher{}, err
		}
	}
	return b.libzmq.publish(path, n, lossless)
}

// cost measures one subscriber at full speed, when nothing is lost.
func (b *bench) cost(w *workload, n int, sub string) error {
	pub, err := b.publish(w, n, true)
	if err != nil {
		return err
	}
	defer pub.end()
	warm := max(w.count/5, n*(w.stores+1)) // every publisher has sent all it has
	var p *process
	if sub == "libzmq" {
		p, err = b.libzmq.subscribe(warm, w.count, pub.endpoints)
	} else {
		p, err = b.receive(sub, warm, w.count, pub.endpoints)
	}
	if err != nil {
		return err
	}
	defer p.end()
	for _, step := range []func() error{
		func() error { return p.expect("ready") },
		func() error { return pub.expect("subscribed") },
		func() error { return pub.say("go %d", warm) },
		func() error { return p.expect("warm") },
		func() error { return pub.say("go %d", w.count) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	fields := 2
	if sub == "libzmq" {
		fields = 4
	}
	v, err := p.numbers(fields)
	if err != nil {
		return err
	}
	if sub == "libzmq" && v[3] != 0 {
		return fmt.Errorf("%d messages of other than 3 frames", v[3])
	}
	b.note(w, n, sub, float64(v[0])/1e3/float64(w.count))
	b.note(w, n, sub+"_rate", float64(w.count)/(float64(v[1])/1e9))
	return nil
}

func (b *bench) receive(mode string, warm, count int, endpoints []string) (*process, error) {
	return start(b.self, append([]string{"receive", "-profile", b.profileTo, mode, fmt.Sprint(warm), fmt.Sprint(count)}, endpoints...)...)
}

// account lets publishers send as fast as they can and lose what their subscriber
// is too slow for, as engines do, and holds what was sent against what the feed
// says has come and has not.
func (b *bench) account(w *workload, n int) error {
	pub, err := b.publish(w, n, false)
	if err != nil {
		return err
	}
	defer pub.end()
	p, err := b.receive("index", 0, 0, pub.endpoints)
	if err != nil {
		return err
	}
	defer p.end()
	for _, step := range []func() error{
		func() error { return p.expect("ready") },
		func() error { return p.expect("warm") },
		func() error { return pub.expect("subscribed") },
		func() error { return pub.say("go %d", w.count) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if _, err := pub.line(); err != nil { // sent
		return err
	}
	v, err := b.progress(p)
	if err != nil {
		return err
	}
	b.note(w, n, "applied_rate", float64(v[0])/(float64(v[3])/1e9))
	// The loss of the last message shows with the next.
	sent := int64(w.count)
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if v, err = b.progress(p); err != nil {
			return err
		}
		if v[0]+v[1] >= sent || time.Now().After(end) {
			break
		}
		if err := pub.say("go %d", n); err != nil {
			return err
		}
		if _, err := pub.line(); err != nil {
			return err
		}
		sent += int64(n)
	}
	b.note(w, n, "lost", float64(v[1])/float64(sent))
	b.note(w, n, "unaccounted", float64(sent-v[0]-v[1]))
	return nil
}

// progress asks a receiver: messages applied, missed, cpu ns, wall ns.
func (b *bench) progress(p *process) ([]int64, error) {
	if err := p.say("?"); err != nil {
		return nil, err
	}
	return p.numbers(4)
}

func median(v []float64) float64 { return slices.Sorted(slices.Values(v))[len(v)/2] }

// load is the machine's load average.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
