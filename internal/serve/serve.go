// Package serve is the endpoint picker as a service: it answers a proxy's
// ext_proc streams from the decision of core/pick, and keeps beside it what an
// operator needs (health, metrics, the admin API) and what Envoy needs (the
// hosts file, bootstraps).
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Run serves until ctx ends, then drains and returns nil; it returns an error
// when it cannot start or a listener fails. c is followed: edits of its file
// apply while running. A second signal during the drain is the caller's to heed:
// it may exit, nothing is left to be saved.
func Run(ctx context.Context, c *Config, o Options) error {
	o, err := o.check()
	if err != nil {
		return err
	}
	s, err := start(c, o)
	if err != nil {
		return err
	}
	defer s.tokens.close()
	defer s.feed.Close()
	defer s.picker.decisions.close()
	o.follow(c.LogLevel)
	s.feed.Apply(c.Pods)
	if o.Ready != nil {
		o.Ready(s.listeners.addresses())
	}
	return s.run(ctx)
}

// server is a running picker.
type server struct {
	config    *Config
	options   Options
	log       *slog.Logger
	fleet     *view.Fleet
	feed      *feed.Feed
	tokens    *tokens
	parity    *parityCheck
	picker    *Picker
	processor *Processor
	ends      *endSignal
	health    Health
	hosts     *hostsFile
	conns     *connCount
	listeners *listeners
	grpc      *grpc.Server // ext_proc and health
	healthRPC *grpc.Server // health alone
	admin     *http.Server
	metrics   *http.Server
	begun     time.Time
	ready     atomic.Bool
	sources   string // line last logged; housekeeping's
	hostsErr  string // last failure of the hosts file, logged once; housekeeping's
}

// start opens the sockets first: a port that is taken is the most likely fault.
func start(c *Config, o Options) (*server, error) {
	l, err := listen(c.Listen)
	if err != nil {
		return nil, err
	}
	s := &server{config: c, options: o, log: o.Log, listeners: l, fleet: newFleet(c), health: newHealth(), conns: &connCount{}, begun: time.Now()}
	s.hosts = &hostsFile{path: c.Envoy.EndpointsFile, cluster: c.Envoy.Cluster}
	hub := recording.NewHub()
	met := newMetrics()
	s.tokens = newTokens(nil, s.fleet.Pods.Snapshot, func() *rules { return s.picker.rules.Load() }, c.Limits, met, o.Log)
	s.parity = newParityCheck(s.tokens, s.fleet, met, o.Log, feed.Now)
	s.tokens.parity = s.parity.of
	s.feed = feed.New(s.fleet, feed.Options{
		Log: o.Log, Hub: hub, Watcher: s.parity.watch, Pages: true, ScrapeInterval: c.Scrape.Interval, ScrapeTimeout: c.Scrape.Timeout,
		DeviceExporters: c.Scrape.Devices,
		ScrapeBytes:     int64(c.Limits.ScrapeBytes), Limits: feed.Limits{MessageBytes: int(c.Limits.FrameBytes)},
	})
	s.picker = newPicker(s.fleet, newRules(c, s.tokens.chain), c.Limits.RecentCards, o, met)
	s.picker.tokenizers, s.picker.parity = s.tokens.snapshot, s.parity
	if s.picker.decisions, err = recordDecisions(c, s.picker, o.Version.Version); err != nil {
		s.feed.Close()
		s.tokens.close()
		l.close()
		return nil, err
	}
	mode, _ := parseEndSignal(o.EndSignal) // checked
	forced, _ := forcedMode(o.RequestBodyMode)
	s.ends = newEndSignal(mode, o.EndTTL, o.Log)
	s.processor = newProcessor(s.picker, forced, s.ends, o.Log)
	s.picker.streams = func() (int64, int) { return s.processor.open.Load(), s.ends.lingering() }
	s.picker.events = s.feed.Counters
	met.registry.MustRegister(&collector{picker: s.picker, feed: s.feed})

	s.grpc = grpc.NewServer(append(serverOptions(int(c.Limits.RequestBytes)), grpc.StatsHandler(s.conns))...)
	extproc.RegisterExternalProcessorServer(s.grpc, s.processor)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	s.healthRPC = grpc.NewServer()
	healthpb.RegisterHealthServer(s.healthRPC, s.health)
	api := newAdmin(s.picker, o.Version, o.Log)
	api.hub, api.config = hub, absolute(c.Path)
	s.admin = httpServer(api.handler(), o.Log)
	s.metrics = httpServer(met.handler(), o.Log)
	return s, nil
}

// absolute is the path as it reads from anywhere; "" stays.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); path != "" && err == nil {
		return abs
	}
	return path
}

// run serves every listener until ctx ends or one fails.
func (s *server) run(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	g, failed := errgroup.WithContext(work)
	serveRPC(g, s.grpc, s.listeners.extProc)
	if l := s.listeners.health; l != nil {
		serveRPC(g, s.healthRPC, l)
	}
	s.serveHTTP(g, s.admin, bounded(s.listeners.admin))
	s.serveHTTP(g, s.metrics, bounded(s.listeners.metrics))
	g.Go(func() error { s.keepHouse(work); return nil })
	g.Go(func() error { s.parity.run(work); return nil })
	g.Go(func() error {
		s.config.Watch(work, WatchOptions{Now: s.options.Reload, Log: s.log, Failed: func(error) {
			s.picker.met.reloads.WithLabelValues("rejected").Inc()
			s.picker.met.configBad.Store(true)
		}, Mended: func() { s.picker.met.configBad.Store(false) }}, s.apply)
		return nil
	})
	select {
	case <-ctx.Done():
		s.drain()
	case <-failed.Done():
	}
	stop()
	s.grpc.Stop()
	s.healthRPC.Stop()
	_ = s.admin.Close()
	_ = s.metrics.Close()
	return g.Wait()
}

// serveRPC runs one gRPC server. A stop that overtakes the start is no failure.
func serveRPC(g *errgroup.Group, r *grpc.Server, l net.Listener) {
	g.Go(func() error {
		if err := r.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return fmt.Errorf("serve %s: %w", l.Addr(), err)
		}
		return nil
	})
}

func (s *server) serveHTTP(g *errgroup.Group, h *http.Server, l net.Listener) {
	if l == nil {
		return
	}
	g.Go(func() error {
		if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve %s: %w", l.Addr(), err)
		}
		return nil
	})
}

// apply puts an edited configuration in force. Running requests keep the pods
// they are on.
func (s *server) apply(next *Config) {
	s.options.follow(next.LogLevel)
	n := *next
	n.Limits = s.config.Limits // these need a restart; the watcher said so
	before := s.fleet.Pods.Snapshot()
	s.picker.rules.Store(newRules(&n, s.tokens.chain))
	s.tokens.keep(n.Models)
	s.feed.Apply(next.Pods)
	after := s.fleet.Pods.Snapshot()
	for _, p := range before.Pods {
		if after.ByName(p.Spec.Name) == nil {
			s.picker.met.forget(p.Spec.Name)
		}
	}
	s.picker.met.reloads.WithLabelValues("applied").Inc()
}

// keepHouse does what is due now and then.
func (s *server) keepHouse(ctx context.Context) {
	tick := time.NewTicker(housekeeping)
	defer tick.Stop()
	for {
		s.updateHosts()
		presume(s.fleet.View(), s.picker.rules.Load().limits(), s.picker.now())
		s.ends.reconcile(s.fleet.View(), feed.Clock())
		s.parity.sweep()
		s.updateReadiness()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// housekeeping is how long a change of the fleet may take to reach Envoy's hosts
// file; a look costs microseconds.
const housekeeping = 100 * time.Millisecond

func (s *server) updateHosts() {
	err := s.hosts.update(s.fleet.Pods.Snapshot())
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == s.hostsErr:
	case err != nil:
		s.log.Error("cannot write the hosts file for Envoy; trying on", "err", err,
			"hint", "create the folder or set envoy.endpoints_file")
	default:
		s.log.Info("the hosts file is written again", "file", s.hosts.path)
	}
	s.hostsErr = text
}

// updateReadiness turns ready once, when the fleet is known and its events are
// caught up, or when that has taken too long. Engines may name their event
// sources later: the line comes again when their number changes.
func (s *server) updateReadiness() {
	v := s.fleet.View()
	if !s.ready.Load() {
		if !startupPatience.complete(&v, time.Since(s.begun)) || s.ready.Swap(true) {
			return
		}
		s.health.Ready(true)
	}
	with := 0
	for _, p := range v.Pods.Pods {
		if hasEvents(p) {
			with++
		}
	}
	if line := fmt.Sprintf("%d of %d pods have event sources", with, len(v.Pods.Pods)); line != s.sources {
		s.log.Info("serving: " + line)
		s.sources = line
	}
}
