// Profile runs one phase of the index's benchmark over and over and writes a CPU
// profile of just that phase: preparing and tidying up carry no label.
//
// make bench-index-profile turns them into text. Of a phase's work, phase.rate is
// what the benchmark times.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/eppctl/eppctl/bench/phase"
	"github.com/eppctl/eppctl/bench/product"
	"github.com/eppctl/eppctl/bench/workload"
)

func main() {
	name := flag.String("phase", "", "what to run: "+strings.Join(slices.Sorted(maps.Keys(phases)), ", "))
	long := flag.Duration("for", 10*time.Second, "how long to repeat it")
	out := flag.String("out", "out/index.pprof", "where the profile goes")
	flag.Parse()
	runtime.LockOSThread() // times are this thread's
	if err := run(*name, *long, *out); err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		os.Exit(1)
	}
}

func run(name string, long time.Duration, out string) error {
	p, ok := phases[name]
	if !ok {
		return fmt.Errorf("no phase %q: see -h", name)
	}
	w := workload.New(p.ranks)
	f := &fleet{Workload: w, Draws: w.Draw()}
	f.ix = product.New(w, p.sized)
	phase.Load(f.ix, w, p.host, workload.PerEvent)
	to, err := os.Create(out)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := pprof.StartCPUProfile(to); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	for end := time.Now().Add(long); time.Now().Before(end); {
		p.prepare(f)
		pprof.Do(context.Background(), pprof.Labels("phase", name), func(context.Context) { p.work(f) })
	}
	return nil
}

// fleet is a loaded index and its traffic.
type fleet struct {
	*workload.Workload
	*workload.Draws
	ix   *product.Index
	next int // prompt to look up
}

// timed is a phase: work is what the profile shows.
type timed struct {
	ranks         int
	sized, host   bool
	prepare, work func(*fleet)
}

const ranks = 64

var phases = map[string]timed{
	"load":               {ranks, false, false, func(f *fleet) { f.empty(false) }, (*fleet).load},
	"load_sized":         {ranks, true, false, func(f *fleet) { f.empty(true) }, (*fleet).load},
	"mix":                {ranks, false, false, nothing, func(f *fleet) { phase.Mix(f.ix, f.Workload, f.Evict, workload.PerEvent, 1) }},
	"mix_single":         {ranks, false, false, nothing, func(f *fleet) { phase.Mix(f.ix, f.Workload, f.Evict, 1, 1) }},
	"decode":             {ranks, false, false, nothing, func(f *fleet) { phase.Decode(f.ix, f.Workload, f.Decode) }},
	"mix_single_batched": {ranks, false, false, nothing, func(f *fleet) { phase.Mix(f.ix, f.Workload, f.Evict, 1, workload.Batch) }},
	"decode_batched":     {ranks, false, false, nothing, func(f *fleet) { phase.Decode(f.ix, f.Workload, f.Steps) }},
	"beside":             {ranks, false, false, nothing, func(f *fleet) { phase.Beside(f.ix, f.Workload, f.Long[:4000], f.Refresh) }},
	"remove":             {ranks, false, false, (*fleet).refill, func(f *fleet) { phase.Drops(f.ix, ranks) }},
	"miss":               {ranks, false, false, nothing, (*fleet).miss},
	"hot_1024":           {1024, false, true, nothing, (*fleet).hot},
	"hot_64":             {ranks, false, true, nothing, (*fleet).hot},
}

func nothing(*fleet) {}

func (f *fleet) empty(sized bool) {
	f.ix = product.New(f.Workload, sized)
	runtime.GC()
}

func (f *fleet) load() { phase.Load(f.ix, f.Workload, false, workload.PerEvent) }

// refill gives the ranks back what the round before took.
func (f *fleet) refill() {
	f.empty(false)
	f.load()
}

// hot looks one prompt up, all in the processor's cache.
func (f *fleet) hot() {
	tokens := f.Conversations[f.Long[0]].Tokens
	for range 10_000 {
		f.ix.Lookup(tokens)
	}
}

// miss looks up prompts that differ from what is held behind the app's prefix.
func (f *fleet) miss() {
	for range 1000 {
		tokens := slices.Clone(f.Conversations[f.Long[f.next%len(f.Long)]].Tokens)
		f.next++
		for i := workload.Shared * workload.Size; i < len(tokens); i++ {
			tokens[i] ^= workload.Foreign
		}
		f.ix.Lookup(tokens)
	}
}
