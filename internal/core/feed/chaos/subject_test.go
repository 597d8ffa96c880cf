package chaos

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim/freeport"
)

const model = "m"

// patience is how long anything may take. A replay that failed is asked for
// again after 30 s; the rest is for a busy machine.
const patience = 100 * time.Second

// kind is a way to set up an engine.
type kind struct {
	name   string
	args   []string // of testdata/engine.py
	ip     string   // where it lives
	dials  bool     // its publisher connects to us
	replay bool
	page   bool // it has a metrics page
}

var kinds = []kind{
	{name: "replayed", replay: true, page: true, args: []string{"events_as=map"}},
	{name: "old-layouts", replay: true, args: []string{"events_as=array", "topic=no"}},
	{name: "no-replay", page: true, args: []string{"events_as=map"}},
	{name: "bare", args: []string{"events_as=array"}},
	{name: "dials", ip: "127.0.0.2", dials: true, replay: true, page: true, args: []string{"events_as=map"}},
	{name: "dials-bare", ip: "127.0.0.3", dials: true, args: []string{"events_as=map"}},
	{name: "lossy", replay: true, page: true, args: []string{"events_as=map", "started=no", "hwm=20", "omit=60", "topic=no"}},
	{name: "narrow", replay: true, page: true, args: []string{"events_as=map", "hwm=20", "replayhwm=30"}},
	{name: "forgetful", replay: true, page: true, args: []string{"events_as=array", "hwm=20", "buffer=100"}},
}

// subject is one pod under test: its engine and its place in the fleet. One
// goroutine at a time uses it.
type subject struct {
	kind
	fleet  *view.Fleet
	rng    *rand.Rand
	events string // bind:ADDR or connect:ADDR
	replay string // HOST:PORT
	http   string // HOST:PORT, of the page or of nobody
	engine *engine
	pod    *pod.Pod
	deck   []fault
	log    *slog.Logger
}

// newSubject makes a pod of a kind, and how it is configured; gate is where
// publishers dial in.
func newSubject(k kind, fleet *view.Fleet, rng *rand.Rand, log *slog.Logger, gate string) (*subject, pod.Spec, error) {
	if k.ip == "" {
		k.ip = "127.0.0.1"
	}
	s := &subject{kind: k, fleet: fleet, rng: rng, log: log.With("pod", k.name)}
	var ports [3]string
	for i := range ports {
		at, err := freeport.Take(k.ip)
		if err != nil {
			return nil, pod.Spec{}, err
		}
		ports[i] = at
	}
	s.http = ports[0]
	spec := pod.Spec{Name: k.name, Address: s.http, Engine: pod.EngineVLLM, Model: model}
	if k.dials {
		spec.Bind = "tcp://" + gate
		s.events = "connect:" + k.ip + ":0;" + gate
	} else {
		spec.Events = []string{"tcp://" + ports[1]}
		s.events = "bind:" + ports[1]
	}
	if k.replay {
		s.replay = ports[2]
		spec.Replay = []string{"tcp://" + ports[2]}
	}
	return s, spec, nil
}

// start replaces the engine's process by a new one, whose cache is empty and
// whose sockets are closed. It is asked for the given prompts only.
func (s *subject) start(from, to int) (err error) {
	s.stop()
	args := append([]string{
		"seed=" + strconv.Itoa(s.rng.IntN(1<<30)), fmt.Sprintf("prompts=%d:%d", from, to), "events=" + s.events, "buffer=10000", // vLLM's default
	}, s.args...)
	if s.kind.replay {
		args = append(args, "replay="+s.replay)
	}
	if s.page {
		args = append(args, "http="+s.http)
	}
	s.engine, err = startEngine(args)
	return err
}

func (s *subject) stop() {
	if s.engine != nil {
		s.engine.kill()
	}
}

// open opens the sockets. The ports of a process just ended may be taken a
// little longer.
func (s *subject) open() error {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		answer, err := s.engine.do("open")
		if err != nil || answer == "ok" {
			return err
		}
		if time.Now().After(end) {
			return errors.New("the ports stay busy")
		}
	}
}

func (s *subject) run(n int) error {
	_, err := s.engine.do("run %d", n)
	return err
}

// fault is one thing that happens to a pod. It leaves the engine running with
// open sockets.
type fault struct {
	name string
	do   func(*subject) error
}

var faults = []fault{
	{"busy", func(s *subject) error { return s.run(500 + s.rng.IntN(1000)) }},
	{"killed and restarted", func(s *subject) error {
		if err := errors.Join(s.start(0, prompts), s.open()); err != nil {
			return err
		}
		return s.run(1 + s.rng.IntN(50))
	}},
	{"restarted and past the old number", func(s *subject) error {
		seq, err := s.tick()
		if err != nil {
			return err
		}
		return errors.Join(s.start(0, prompts), s.run(int(seq)+1+s.rng.IntN(100)), s.open(), s.run(1+s.rng.IntN(20)))
	}},
	{"port taken over", func(s *subject) error {
		half := s.rng.IntN(2) * prompts / 2
		return errors.Join(s.start(half, half+prompts/2), s.open(), s.run(1+s.rng.IntN(200)))
	}},
	{"late bind", func(s *subject) error {
		if err := s.start(0, prompts); err != nil {
			return err
		}
		err := s.run(s.rng.IntN(100))
		time.Sleep(time.Duration(s.rng.IntN(1000)) * time.Millisecond) // nobody listens meanwhile
		return errors.Join(err, s.open(), s.run(s.rng.IntN(100)))
	}},
	{"process stopped", func(s *subject) error {
		if err := s.engine.signal(syscall.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(time.Duration(s.rng.IntN(int(4 * ping)))) // we notice, or do not
		return errors.Join(s.engine.signal(syscall.SIGCONT), s.run(1+s.rng.IntN(200)))
	}},
	{"cut off", func(s *subject) error {
		_, err := s.engine.do("close")
		return errors.Join(err, s.run(s.rng.IntN(100)), s.open(), s.run(s.rng.IntN(100)))
	}},
	{"silent replay port", func(s *subject) error { return s.lie("silent") }},
	{"endless replay", func(s *subject) error { return s.lie("endless") }},
	{"replay port of another engine", func(s *subject) error { return s.lie("foreign") }},
	{"absurd number in a replay", func(s *subject) error { return s.lie("absurd") }},
	{"slow reader", func(s *subject) error {
		_, err := s.engine.do("freeze %d %d", os.Getpid(), 1000+s.rng.IntN(1000))
		return err
	}},
}

// lie makes the replay port lie while batches are lost and come again.
func (s *subject) lie(how string) error {
	_, err := s.engine.do("lie %s", how)
	if err == nil {
		_, err = s.engine.do("close")
	}
	err = errors.Join(err, s.run(s.rng.IntN(100)), s.open(), s.run(1+s.rng.IntN(100)))
	if err != nil {
		return err
	}
	s.until(func(y view.Sync) bool { return lasting(y.State) }) // or does not get that far
	_, err = s.engine.do("lie honest")
	return err
}

// suffer lets n faults happen, all kinds before one comes again. Most wait until
// the one before is mended, and look; the others come on top of each other.
func (s *subject) suffer(n int) error {
	for range n {
		if s.rng.IntN(3) > 0 {
			if err := s.settle(); err != nil {
				return err
			}
		}
		if len(s.deck) == 0 {
			s.deck = append(s.deck, faults...)
			s.rng.Shuffle(len(s.deck), func(i, j int) { s.deck[i], s.deck[j] = s.deck[j], s.deck[i] })
		}
		f := s.deck[0]
		s.deck = s.deck[1:]
		s.log.Info("begins: " + f.name)
		if err := f.do(s); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		s.log.Info("is over: " + f.name)
	}
	return nil
}

// tick publishes a batch that changes nothing and returns its number.
func (s *subject) tick() (uint64, error) {
	answer, err := s.engine.do("tick")
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(answer, 10, 64)
}

// settle waits until the feed has applied all there is to apply, and compares
// the index with what the engine holds. Only a later message tells that one was
// lost, so it sends one that changes nothing until it has come through.
func (s *subject) settle() error {
	why := "no batch came through"
	for end := time.Now().Add(patience); time.Now().Before(end); {
		seq, err := s.tick()
		if err != nil {
			return err
		}
		if !s.until(func(y view.Sync) bool { return y.LastSeq == seq && lasting(y.State) }) {
			continue
		}
		t, err := s.engine.truth()
		if err != nil {
			return err
		}
		state := s.sync().State
		// A port that was caught lying is not asked again.
		if state == view.Partial && s.kind.replay && t.oldest == 0 && s.sync().Why != reason.ReplayMismatch {
			why = "a replay could give what is missing"
			time.Sleep(200 * time.Millisecond) // it is asked for again after a cooldown
			continue
		}
		if why = s.compare(t, state); why == "" {
			return nil
		}
		// The board may still show a connection that has just ended, or what was
		// before a replay that runs. Without another batch nothing else moves.
		for again := time.Now().Add(patience / 5); s.sync().State == state && time.Now().Before(again); time.Sleep(10 * time.Millisecond) {
			if why = s.compare(t, state); why == "" {
				return nil
			}
		}
		if s.sync().State == state {
			break
		}
	}
	return fmt.Errorf("%s; %+v", why, s.sync())
}

// until waits a while for the stream to be so.
func (s *subject) until(so func(view.Sync) bool) bool {
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if so(s.sync()) {
			return true
		}
	}
	return false
}

// lasting reports that a state does not end by itself.
func lasting(s view.SyncState) bool { return s == view.Live || s == view.Partial }

func (s *subject) sync() view.Sync { return s.fleet.Sync.Get(s.pod.Members[0]) }

// compare says where the index differs from the truth: in anything while the
// history is complete, in what it holds too much when it is not.
func (s *subject) compare(t truth, state view.SyncState) string {
	differs := func(got, want int) bool { return got > want || got < want && state == view.Live }
	m := s.pod.Members[0]
	var out index.Result
	for p, want := range t.depths {
		s.fleet.Index.Lookup(prompt(p), &out)
		got := 0
		for _, x := range out.Matches {
			if x.Member == m {
				got = int(x.Depth)
			}
		}
		if differs(got, want) {
			return fmt.Sprintf("%s: %d blocks of prompt %d, the engine holds %d", state, got, p, want)
		}
	}
	stats, _ := s.fleet.Index.Member(m)
	if got := stats.Blocks[event.TierGPU]; differs(got, t.resident) {
		return fmt.Sprintf("%s: %d blocks in all, the engine holds %d", state, got, t.resident)
	}
	if state == view.Live && stats.OrphansNow > 0 {
		return fmt.Sprintf("%s: %d stores without a parent", state, stats.OrphansNow)
	}
	return ""
}

// ping is the feed's silence limit in this test: short, so that a stopped engine
// is sometimes taken for a dead one.
const ping = 300 * time.Millisecond

func options() feed.Options {
	return feed.Options{ScrapeInterval: 50 * time.Millisecond, Limits: feed.Limits{Ping: ping}}
}
