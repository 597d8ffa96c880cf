package serve

import (
	"log/slog"
	"net/http"
	"sync"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/view"
)

// Observed follows engines as a running serve does, without being one: events and
// metrics come from the engines themselves, nothing is picked, and the admin API
// over it answers without a socket. What a picker counts (requests in flight,
// hits) is not there. Methods may be called from any goroutine.
type Observed struct {
	fleet  *view.Fleet
	feed   *feed.Feed
	picker *Picker
	log    *slog.Logger
	close  sync.Once
}

// Observe begins to follow the pods of a configuration. Close ends it.
func Observe(c *Config, pods []pod.Spec, log *slog.Logger) *Observed {
	o := &Observed{fleet: newFleet(c), log: log}
	o.feed = feed.New(o.fleet, feed.Options{
		Log: log, ScrapeInterval: c.Scrape.Interval, ScrapeTimeout: c.Scrape.Timeout, DeviceExporters: c.Scrape.Devices,
		ScrapeBytes: int64(c.Limits.ScrapeBytes), Limits: feed.Limits{MessageBytes: int(c.Limits.FrameBytes)},
	})
	nobody := func(*Model) *prompt.Chain { return &prompt.Chain{} } // no prompt leaves this process
	o.picker = newPicker(o.fleet, newRules(c, nobody), 0, Options{Log: log}, newMetrics())
	o.picker.source, o.picker.events = "engines", o.feed.Counters
	o.feed.Apply(pods)
	return o
}

// Handler is the admin API over the fleet as it is.
func (o *Observed) Handler() http.Handler { return newAdmin(o.picker, Version{}, o.log).handler() }

// Close ends all connections to engines.
func (o *Observed) Close() { o.close.Do(o.feed.Close) }
