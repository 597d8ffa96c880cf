package chaos

import (
	"flag"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/sim/freeport"
)

var (
	rounds = flag.Int("chaos.rounds", 3, "rounds of faults; three bring every fault to every pod")
	seed   = flag.Uint64("chaos.seed", 0, "of the schedule; 0 = a random one")
)

// faultsPerRound happen to a pod between two comparisons with the truth.
const faultsPerRound = 4

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// After whatever happened, once it is quiet: the index equals what the engines
// hold. Nothing is counted too much, ever; nothing is missing that a replay
// could give.
func TestChaos(t *testing.T) {
	needLibzmq(t)
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("go test ./internal/core/feed/chaos -chaos.seed=%d -chaos.rounds=%d", *seed, *rounds)
	fleet := &view.Fleet{
		Pods: pod.NewTable(), Index: index.New(index.Options{Seed: *seed, TTL: -1}), Telemetry: &telemetry.Board{},
		Sync: &view.SyncBoard{}, Load: view.NewLedger(),
	}
	var book logbook
	o := options()
	o.Log = slog.New(slog.NewTextHandler(&book, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.HTTP = &http.Client{Transport: &http.Transport{}}
	f := feed.New(fleet, o)
	defer o.HTTP.CloseIdleConnections()
	defer f.Close()
	gate, err := freeport.Take("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	var subjects []*subject
	var specs []pod.Spec
	for i, k := range kinds {
		s, spec, err := newSubject(k, fleet, rand.New(rand.NewPCG(*seed, uint64(i))), o.Log, gate)
		if err != nil {
			t.Fatal(err)
		}
		defer s.stop()
		subjects, specs = append(subjects, s), append(specs, spec)
	}
	f.Apply(specs) // before the first engine runs
	each(t, &book, subjects, func(s *subject) error {
		s.pod = fleet.Pods.Snapshot().ByName(s.name)
		if err := s.start(0, prompts); err != nil {
			return err
		}
		if err := s.open(); err != nil {
			return err
		}
		return s.run(100)
	})
	for round := range *rounds {
		each(t, &book, subjects, func(s *subject) error { return s.suffer(faultsPerRound) })
		each(t, &book, subjects, (*subject).settle)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	happened(t, f)
}

// each does something with all subjects at once.
func each(t *testing.T, book *logbook, all []*subject, do func(*subject) error) {
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() {
			if err := do(s); err != nil {
				t.Errorf("%s: %v\n%s", s.name, err, book.of(s.name))
			}
		})
	}
	wg.Wait()
}

// logbook keeps what was logged, to be shown when something goes wrong.
type logbook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logbook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// of returns the last lines about a pod.
func (b *logbook) of(pod string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var lines []string
	for line := range strings.Lines(b.text.String()) {
		if slices.Contains(strings.Fields(line), "pod="+pod) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-100):], "")
}

// happened fails when the schedule did not do what it is for. What it asks for
// comes of every schedule; other things, such as a gap that nothing fills, of most.
func happened(t *testing.T, f *feed.Feed) {
	t.Helper()
	var sum struct{ missed, reconnects uint64 }
	purges, replays := map[string]uint64{}, map[string]uint64{}
	for _, c := range f.Counters() {
		t.Logf("%s: %+v", c.Pod, c)
		sum.missed += c.Missed
		sum.reconnects += c.Connections - 1
		for k, n := range c.Purges {
			purges[k] += n
		}
		for k, n := range c.Replays {
			replays[k] += n
		}
	}
	if *rounds*faultsPerRound < len(faults) {
		return
	}
	for what, n := range map[string]uint64{
		"batch missed": sum.missed, "reconnect": sum.reconnects, "filled replay": replays["filled"],
		"purge for another process": purges["identity"], "purge for a cut": purges["reconnect"],
	} {
		if n == 0 {
			t.Errorf("not one %s: the faults are none", what)
		}
	}
}
