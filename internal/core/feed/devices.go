package feed

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

const (
	// deviceInterval: DCGM exporter collects every 30 s unless told otherwise.
	deviceInterval = 5 * time.Second
	// deviceKnown is how long a device's last page speaks for it.
	deviceKnown = 60 * time.Second
)

// devices watches the DCGM exporters of the fleet's nodes. One page covers all
// pods of a node, so pages are joined with pods here, once per page. Run keeps
// it up to date; Of may be called from any goroutine.
type devices struct {
	client *http.Client
	now    func() int64 // ns
	log    *slog.Logger
	urls   []string
	hub    *recording.Hub // hears of the pages; nil = nobody does

	mu    sync.Mutex // pages; merge
	pages []devicePage
	known atomic.Pointer[telemetry.Devices]
}

type devicePage struct {
	at   int64 // ns, 0 = none yet
	gpus []telemetry.GPU
	// failing says that the last scrape failed; the devices are those of the
	// last good one.
	failing bool
}

// newDevices watches the exporters at these URLs. That one cannot be read, and
// that it can again, goes to log.
func newDevices(client *http.Client, now func() int64, log *slog.Logger, urls ...string) *devices {
	d := &devices{client: client, now: now, log: log, urls: urls, pages: make([]devicePage, len(urls))}
	d.known.Store(telemetry.NewDevices(nil))
	return d
}

// Run scrapes until ctx ends; all its goroutines have ended when it returns.
func (d *devices) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range d.urls {
		wg.Go(func() {
			var buf bytes.Buffer
			repeat(ctx, deviceInterval, func() error { return d.scrape(ctx, i, &buf) })
		})
	}
	wg.Wait()
}

// Of returns the health of a pod's devices by pod.Spec.Device; Known is false
// when no exporter tells about them.
func (d *devices) Of(device string) telemetry.Device { return d.known.Load().Of(device) }

func (d *devices) scrape(ctx context.Context, i int, buf *bytes.Buffer) error {
	within, cancel := context.WithTimeout(ctx, deviceInterval)
	defer cancel()
	at := d.now()
	text, err := fetchPage(within, d.client, d.urls[i], 0, buf)
	if ctx.Err() != nil { // our own end, not the exporter's failure
		return err
	}
	if err == nil {
		d.tell(i, text, at)
		err = d.read(i, text, at)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &d.pages[i]
	switch {
	case err != nil && !p.failing:
		d.log.Warn("device exporter cannot be read: its devices turn unknown", "exporter", hostOf(d.urls[i]), "after", deviceKnown, "err", err)
	case err == nil && p.failing:
		d.log.Info("device exporter can be read again", "exporter", hostOf(d.urls[i]))
	}
	p.failing = err != nil
	d.merge(at)
	return err
}

// read takes an exporter's page, asked for at a time in ns.
func (d *devices) read(i int, text []byte, at int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &d.pages[i]
	gpus, err := telemetry.ParseGPUs(text, p.gpus, at)
	if err != nil {
		return err
	}
	p.at, p.gpus = at, gpus
	d.merge(at)
	return nil
}

// grow makes room for the page of one more exporter and returns its number.
func (d *devices) grow() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pages = append(d.pages, devicePage{})
	return len(d.pages) - 1
}

// tell hands a page to the hub, if anybody looks on.
func (d *devices) tell(i int, text []byte, at int64) {
	if d.hub == nil || !d.hub.Watched() {
		return
	}
	d.hub.Publish(&recording.Record{
		Type: recording.TypePage, At: at, Status: http.StatusOK, Body: bytes.Clone(text),
		Pod: &recording.Pod{Name: hostOf(d.urls[i]), Addr: hostOf(d.urls[i]), Direction: recording.Exporter},
	})
}

// merge joins all pages that still count. Clocks are compared over the whole
// fleet. mu is held.
func (d *devices) merge(now int64) {
	var all []telemetry.GPU
	for _, p := range d.pages {
		if p.gpus != nil && now-p.at <= int64(deviceKnown) {
			all = append(all, p.gpus...)
		}
	}
	d.known.Store(telemetry.NewDevices(all))
}
