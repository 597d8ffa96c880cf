package tap

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"syscall"
	"time"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect"
)

// Engines is the source of what engines send: pods of a configuration, as serve
// would follow them, or endpoints of which nothing else is known.
type Engines struct {
	Pods       []pod.Spec       // of a configuration
	Publishers []feed.Publisher // or these, and
	Listen     []string         // whoever dials these
	Replay     bool             // ask replay ports for what is missing
	ReplayFrom uint64           // and for history from this batch on
	Metrics    time.Duration    // hand over metrics pages, read this often; 0 = do not
	Devices    []string         // URLs of device exporters, for Metrics
	Limits     feed.Limits
	Queue      recording.Limits  // of what waits for tap
	Log        *slog.Logger      // nil = nothing
	Listening  func(addr string) // is told of each address listened at; nil = nobody
}

// scrapeEvery is how often a pod's metrics page is read, which tells a restart.
const scrapeEvery = time.Second

func (s *Engines) String() string { return "engines" }

// Run implements Source.
func (s *Engines) Run(ctx context.Context, emit func([]*recording.Record) error) error {
	hub := recording.NewHub()
	q := hub.Subscribe(s.Queue, nil)
	defer q.Close()
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.follow(ctx, hub) }()
	defer func() {
		cancel()
		if ended != nil {
			<-ended
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			ended = nil
			return err
		case <-q.Ready():
			if rs := q.Take(); len(rs) > 0 {
				if err := emit(rs); err != nil {
					return err
				}
			}
		}
	}
}

// follow runs the streams until ctx ends.
func (s *Engines) follow(ctx context.Context, hub *recording.Hub) error {
	if len(s.Pods) == 0 {
		if len(s.Publishers)+len(s.Listen) == 0 {
			return errors.New("no pod and no endpoint to follow")
		}
		w := &feed.Watch{Publishers: s.Publishers, Listen: s.Listen, Listening: s.Listening, ReplayFrom: s.ReplayFrom, Hub: hub, Limits: s.Limits, Log: s.Log}
		return inUse(w.Run(ctx))
	}
	fleet := &view.Fleet{
		Pods: pod.NewTable(), Index: index.New(index.Options{}), Telemetry: &telemetry.Board{}, Sync: &view.SyncBoard{}, Load: view.NewLedger(),
	}
	f := feed.New(fleet, feed.Options{
		Log: s.Log, Hub: hub, Discard: true, NoReplay: !s.Replay, ReplayFrom: s.ReplayFrom, Limits: s.Limits,
		ScrapeInterval: cmp.Or(s.Metrics, scrapeEvery), Pages: s.Metrics > 0, DeviceExporters: s.Devices,
	})
	defer f.Close()
	f.Apply(s.Pods)
	<-ctx.Done()
	return nil
}

// inUse says what to do about an address that another process listens at.
func inUse(err error) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	return &inspect.Error{
		Kind: inspect.Failed, Code: "E_LISTEN", What: err.Error(), Err: err,
		Why: "another process listens there: if it is serve, by events_bind of a pod, it has the events", Hint: "try: --from serve, or --listen with a port that is free",
	}
}
