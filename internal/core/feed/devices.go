package feed

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eppctl/eppctl/internal/core/telemetry"
)

const (
	// deviceInterval: DCGM exporter collects every 30 s unless told otherwise.
	deviceInterval = 5 * time.Second
	// deviceKnown is how long a device's last page speaks for it.
	deviceKnown = 60 * time.Second
)

// Devices watches the DCGM exporters of the fleet's nodes. One page covers all
// pods of a node, so pages are joined with pods here, once per page. Run keeps
// it up to date; Of may be called from any goroutine.
type Devices struct {
	client *http.Client
	now    func() int64 // ns
	urls   []string

	mu    sync.Mutex // pages; merge
	pages []devicePage
	byPod atomic.Pointer[map[string]telemetry.Device] // by pod.Spec.Device
}

type devicePage struct {
	at   int64 // ns, 0 = none yet
	gpus []telemetry.GPU
	err  string // of the last scrape
}

// NewDevices watches the exporters at these URLs.
func NewDevices(client *http.Client, now func() int64, urls ...string) *Devices {
	d := &Devices{client: client, now: now, urls: urls, pages: make([]devicePage, len(urls))}
	d.byPod.Store(&map[string]telemetry.Device{})
	return d
}

// Run scrapes until ctx ends; all its goroutines have ended when it returns.
func (d *Devices) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range d.urls {
		wg.Go(func() {
			var buf bytes.Buffer
			repeat(ctx, deviceInterval, func() error { return d.scrape(ctx, i, &buf) })
		})
	}
	wg.Wait()
}

// Of returns the health of a pod's devices, named by its "namespace/pod"; Known
// is false when no exporter tells about them.
func (d *Devices) Of(device string) telemetry.Device { return (*d.byPod.Load())[device] }

// Errors returns the last error per exporter URL; exporters that answer are
// left out.
func (d *Devices) Errors() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	failing := map[string]string{}
	for i, p := range d.pages {
		if p.err != "" {
			failing[d.urls[i]] = p.err
		}
	}
	return failing
}

func (d *Devices) scrape(ctx context.Context, i int, buf *bytes.Buffer) error {
	ctx, cancel := context.WithTimeout(ctx, deviceInterval)
	defer cancel()
	at := d.now()
	text, err := fetchPage(ctx, d.client, d.urls[i], 0, buf)
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &d.pages[i]
	if err == nil {
		var gpus []telemetry.GPU
		if gpus, err = telemetry.ParseGPUs(text, p.gpus); err == nil {
			*p = devicePage{at: at, gpus: gpus}
		}
	}
	if err != nil {
		p.err = err.Error()
	}
	d.merge(at)
	return err
}

// merge joins all pages that still count. Clocks are compared over the whole
// fleet. mu is held.
func (d *Devices) merge(now int64) {
	var all []telemetry.GPU
	for _, p := range d.pages {
		if p.gpus != nil && now-p.at <= int64(deviceKnown) {
			all = append(all, p.gpus...)
		}
	}
	clocks := telemetry.MedianClocks(all)
	byPod := map[string]telemetry.Device{}
	for i := range all {
		ns, pod := all[i].Namespace, all[i].Pod
		name := ns + "/" + pod
		if _, done := byPod[name]; !done && pod != "" {
			byPod[name] = telemetry.Join(all, ns, pod, clocks)
		}
	}
	d.byPod.Store(&byPod)
}
