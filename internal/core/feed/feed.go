// Package feed is the one edge of the core with the outside: it keeps the pod
// table, the index, the telemetry board and the states of the event streams up
// to date by ZeroMQ subscriptions, scrapes and questions to the engines. It
// writes; the decision only reads.
package feed

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Options of a Feed. The zero value of a field means its default.
type Options struct {
	Log      *slog.Logger
	HTTP     *http.Client // for scrapes and discovery; without a timeout of its own
	Resolver Resolver     // default: net.DefaultResolver

	ScrapeInterval time.Duration // default DefaultScrapeInterval
	ScrapeTimeout  time.Duration // default: min(1 s, twice the interval)
	ScrapeBytes    int64         // largest metrics page; default DefaultScrapeBytes
	Carry          time.Duration // how long a metric missing from a page keeps its value; default DefaultCarry

	// DeviceExporters are the URLs of the nodes' DCGM exporters; the pods' Device
	// says whose accelerators they are.
	DeviceExporters []string

	// Hub hears what the event streams bring; nil = nobody does. Discard leaves
	// the index out: events are decoded and counted, and that is all.
	Hub     *recording.Hub
	Discard bool
	// Watcher hears the events that enter the index; nil = nobody does.
	Watcher EventWatcher
	// Pages lets the hub hear the metrics pages too.
	Pages bool
	// NoReplay asks no replay port: engines answer there on the thread that
	// publishes, which whoever only looks on should not hold up.
	NoReplay bool
	// ReplayFrom is the first batch that replay ports are asked for; 0 = all there are.
	ReplayFrom uint64

	Limits       Limits        // of event connections
	ResolveEvery time.Duration // between two look-ups of a DNS name; default 30 s
}

const (
	defaultResolveEvery = 30 * time.Second
	// discoverTimeout bounds one round of questions to an engine.
	discoverTimeout = 10 * time.Second
	// discoverPause is the least time between two rounds of them that restarts
	// cause, discoverSlow the longest while the engine has not told everything.
	discoverPause = time.Second
	discoverSlow  = 30 * time.Second
	// growReserve is the part of the fleet's members that is kept for pods to
	// come when an engine tells of more ranks than are configured.
	growReserve = pod.MaxMembers / 8
	// roomEvery is how often a pod whose ranks found no room looks for some.
	roomEvery  = 10 * time.Second
	sweepEvery = time.Second
)

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.HTTP == nil {
		// No proxy: pods are reached directly, as Envoy reaches them.
		o.HTTP = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: HeaderBytes}}
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.ScrapeInterval <= 0 {
		o.ScrapeInterval = DefaultScrapeInterval
	}
	if o.ResolveEvery <= 0 {
		o.ResolveEvery = defaultResolveEvery
	}
	o.Limits = o.Limits.withDefaults()
	return o
}

// Feed runs the work of every configured pod. Apply and Close must not run
// beside each other; the other methods may be called from anywhere.
type Feed struct {
	fleet    *view.Fleet
	opts     Options
	replayer *replayer
	gates    gates
	scrapes  ScrapeCounters
	devices  *devices

	roomEvery time.Duration

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu   sync.Mutex
	pods map[string]*keeper // by name
}

// New starts a feed with no pods that writes to f.
func New(f *view.Fleet, o Options) *Feed {
	o = o.withDefaults()
	d := dialer{lim: o.Limits}
	fd := &Feed{fleet: f, opts: o, replayer: newReplayer(d), pods: map[string]*keeper{}, roomEvery: roomEvery}
	fd.gates = gates{dialer: d, log: o.Log, open: map[string]*gate{}, refused: map[string]uint64{}}
	fd.ctx, fd.cancel = context.WithCancel(context.Background())
	fd.scrapes.blind.log = o.Log
	fd.devices = newDevices(o.HTTP, Now, o.Log, o.DeviceExporters...)
	if o.Pages {
		fd.devices.hub = o.Hub
	}
	fd.wg.Go(func() { fd.devices.Run(fd.ctx) })
	fd.wg.Go(fd.sweep)
	return fd
}

// sweep lets the index age, about once a second.
func (f *Feed) sweep() {
	for sleep(f.ctx, sweepEvery) == nil {
		f.fleet.Index.Sweep(Now())
	}
}

// Apply makes specs the configured fleet: pods that are new start, pods that are
// gone or became another one are taken out, their blocks purged. When it
// returns, the pod table holds exactly the pods of the specs (fewer while the fleet is
// full); a role, adapters or a draining that changed under way reach it a moment later,
// through the pod's own goroutine. Names are unique; an empty one is the address.
func (f *Feed) Apply(specs []pod.Spec) {
	f.mu.Lock()
	defer f.mu.Unlock()
	want := make(map[string]pod.Spec, len(specs))
	for i := range specs {
		s := normal(specs[i])
		want[s.Name] = s
	}
	var gone []*keeper
	for name, k := range f.pods {
		if s, ok := want[name]; !ok || !samePod(k.configured, s) {
			k.cancel()
			gone = append(gone, k)
			delete(f.pods, name)
		}
	}
	for _, k := range gone {
		<-k.done
	}
	for _, s := range specs { // in the given order: IDs are handed out along it
		s = normal(s)
		if k := f.pods[s.Name]; k != nil {
			k.change(s)
		} else {
			f.pods[s.Name] = f.keep(s)
		}
	}
}

// room is how many more members engines may claim by what they tell.
func (f *Feed) room() int {
	free := pod.MaxMembers - growReserve
	for _, p := range f.fleet.Pods.Snapshot().Pods {
		free -= len(p.Members)
	}
	return free
}

func normal(s pod.Spec) pod.Spec {
	if s.Name == "" {
		s.Name = s.Address
	}
	s.Ranks = max(s.Ranks, 1)
	return s
}

// samePod reports whether two specs differ in nothing that makes a pod another
// one; role, draining, adapters, context length and what is believed of its blocks may
// change under way.
func samePod(a, b pod.Spec) bool {
	a.Role, a.Draining, a.Adapters, a.MaxContext, a.BlockSize = b.Role, b.Draining, b.Adapters, b.MaxContext, b.BlockSize
	return reflect.DeepEqual(a, b)
}

// Close ends every goroutine and empties the fleet.
func (f *Feed) Close() {
	f.Apply(nil)
	f.cancel()
	f.wg.Wait()
}

// Counters returns what every member's stream has counted, by pod and rank.
func (f *Feed) Counters() []Counters {
	var out []Counters
	for _, k := range f.keepers() {
		out = append(out, k.counters()...)
	}
	slices.SortFunc(out, func(a, b Counters) int { return int(a.Member) - int(b.Member) })
	return out
}

// Scrapes returns the counters of all metrics scrapes.
func (f *Feed) Scrapes() *ScrapeCounters { return &f.scrapes }

// Refused counts the publishers that dialled us and were refused, by reason.
func (f *Feed) Refused() map[string]uint64 { return f.gates.counts() }

// Findings returns what the engines say that the configuration does not.
func (f *Feed) Findings() []Finding {
	var out []Finding
	for _, k := range f.keepers() {
		k.mu.Lock()
		out = append(out, k.findings...)
		k.mu.Unlock()
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

func (f *Feed) keepers() []*keeper {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]*keeper, 0, len(f.pods))
	for _, k := range f.pods {
		out = append(out, k)
	}
	return out
}
