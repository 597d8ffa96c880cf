package feed

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// TestDevices watches two nodes: a hot pod on one, healthy pods on both.
func TestDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		row := func(w http.ResponseWriter, metric, pod, more string, value int) {
			fmt.Fprintf(w, "%s{UUID=\"GPU-%s\",modelName=\"H100\",namespace=\"ns\",pod=\"%s\"%s} %d\n", metric, pod, pod, more, value)
		}
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			pods := []string{"a", "b"}
			if r.URL.Path == "/two" {
				pods = []string{"hot"}
			}
			if r.URL.Path == "/two" && down.Load() {
				http.Error(w, "gone", http.StatusServiceUnavailable)
				return
			}
			for _, pod := range pods {
				clock, thermal := 1980, 0
				if pod == "hot" {
					clock, thermal = 990, 3
				}
				row(w, "DCGM_FI_DEV_SM_CLOCK", pod, "", clock)
				row(w, "DCGM_FI_DEV_GPU_UTIL", pod, "", 95)
				row(w, "DCGM_EXP_CLOCK_EVENTS_COUNT", pod, `,clock_event="hw_thermal"`, thermal)
			}
		})
		net := newPipes()
		srv := &http.Server{Handler: h}
		client := &http.Client{Transport: &http.Transport{DialContext: net.dial}}
		var log bytes.Buffer
		d := newDevices(client, Now, slog.New(slog.NewTextHandler(&log, nil)), "http://node/one", "http://node/two")
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { srv.Serve(net) })
		wg.Go(func() { d.Run(ctx) })
		defer func() {
			cancel()
			srv.Close()
			net.Close()
			client.CloseIdleConnections()
			wg.Wait()
		}()

		if got := d.Of("ns/a"); got.Known {
			t.Errorf("before the first page: %+v", got)
		}
		time.Sleep(2 * deviceInterval)
		synctest.Wait()
		if got := d.Of("ns/a"); !got.Known || got.Throttled || got.SlowDown.V != 1 {
			t.Errorf("healthy pod: %+v", got)
		}
		if got := d.Of("ns/hot"); !got.Throttled || got.SlowDown.V != 2 || got.Why != "clock event hw_thermal" {
			t.Errorf("hot pod, whose clock is half of the fleet's median: %+v", got)
		}
		if got := d.Of("other/hot"); got.Known {
			t.Errorf("same name in another namespace: %+v", got)
		}
		down.Store(true)
		time.Sleep(deviceKnown / 2)
		synctest.Wait()
		if !d.Of("ns/hot").Throttled {
			t.Error("a short failure forgets the devices")
		}
		time.Sleep(deviceKnown)
		synctest.Wait()
		if got := d.Of("ns/hot"); got.Known {
			t.Errorf("an exporter that is gone still speaks for its devices: %+v", got)
		}
		if !d.Of("ns/a").Known {
			t.Error("one exporter's failure takes the other's devices")
		}
		down.Store(false)
		time.Sleep(2 * deviceInterval)
		synctest.Wait()
		if got := d.Of("ns/hot,ns/a"); !got.Throttled || Now()-got.At > int64(2*deviceInterval) {
			t.Errorf("back again: %+v", got)
		}
		d.mu.Lock() // what is logged, is logged under it
		defer d.mu.Unlock()
		said := log.String()
		if strings.Count(said, "level=WARN") != 1 || strings.Count(said, "level=INFO") != 1 || !strings.Contains(said, "HTTP 503: gone") {
			t.Errorf("logged:\n%s", said)
		}
	})
}

// TestFeedTellsDeviceHealth: what an exporter says of a pod's device arrives in
// the pod's samples.
func TestFeedTellsDeviceHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newPipes()
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/dcgm":
				fmt.Fprint(w, "DCGM_FI_DEV_XID_ERRORS{UUID=\"GPU-1\",namespace=\"ns\",pod=\"engine-0\"} 79\n")
			case "/metrics":
				fmt.Fprint(w, smallPage)
			default:
				http.NotFound(w, r)
			}
		})}
		client := &http.Client{Transport: &http.Transport{DialContext: net.dial}}
		var wg sync.WaitGroup
		wg.Go(func() { srv.Serve(net) })
		fleet := &view.Fleet{
			Pods: pod.NewTable(), Index: index.New(index.Options{}), Telemetry: &telemetry.Board{},
			Sync: &view.SyncBoard{}, Load: view.NewLedger(),
		}
		f := New(fleet, Options{HTTP: client, DeviceExporters: []string{"http://node/dcgm"}})
		defer func() {
			f.Close()
			srv.Close()
			net.Close()
			client.CloseIdleConnections()
			wg.Wait()
		}()
		f.Apply([]pod.Spec{
			{Name: "bad", Address: "10.0.0.1:8000", Engine: pod.EngineVLLM, Device: "ns/engine-0"},
			{Name: "unwatched", Address: "10.0.0.2:8000", Engine: pod.EngineVLLM},
		})
		time.Sleep(2 * deviceInterval)
		synctest.Wait()
		for name, want := range map[string]bool{"bad": true, "unwatched": false} {
			s := fleet.Telemetry.Get(fleet.Pods.Snapshot().ByName(name).ID).Sample
			if s == nil || s.Device.Fatal != want || s.Device.Known != want {
				t.Errorf("%s: sample %+v", name, s)
			}
		}
	})
}
