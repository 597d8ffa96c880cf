package serve

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/spelling"
)

var errMissing = errors.New("found nothing")

// LogLevels are the values of log_level, as slog spells them in lower case.
var LogLevels = []string{"debug", "info", "warn", "error"}

// A thousand blocks are one long prompt; a thousand million are 60 GB.
const minBlocks, maxBlocks = 1000, 1_000_000_000

// check looks at the values that must fit each other or the machine. It runs
// after the overrides, so a flag is held to the same rules as the file.
func (d *decoder) check(c *Config) {
	d.checkListen(c.Listen)
	d.checkFleet(c)
	l, s := c.Limits, c.Scrape
	d.within("limits.request_bytes", l.RequestBytes, 1<<10, 1<<30)
	d.within("limits.scrape_bytes", l.ScrapeBytes, 1<<10, 1<<28)
	d.within("limits.frame_bytes", l.FrameBytes, 1<<10, 1<<28)
	d.between("limits.pick_deadline", l.PickDeadline, time.Millisecond, time.Minute)
	for _, x := range []struct {
		key string
		v   time.Duration
	}{{"limits.render_timeout", l.RenderTimeout}, {"limits.tokenize_timeout", l.TokenizeTimeout}} {
		d.between(x.key, x.v, time.Millisecond, time.Minute)
		if x.v > l.PickDeadline {
			d.bad(x.key, found(x.v), "at most limits.pick_deadline ("+l.PickDeadline.String()+")", "")
		}
	}
	// The index is never without a bound: lost removals would fill it for ever.
	if l.Blocks < minBlocks || l.Blocks > maxBlocks {
		d.bad("limits.blocks", found(l.Blocks), fmt.Sprintf("%d to %d blocks", minBlocks, maxBlocks), "")
	}
	if l.IndexBytes != 0 {
		d.within("limits.index_bytes", l.IndexBytes, 1<<20, 1<<40)
	}
	if l.RecentCards < 0 || l.RecentCards > 1<<20 {
		d.bad("limits.recent_cards", found(l.RecentCards), "0 to 1048576", "")
	}
	// The floor keeps big pages from eating a core: 100 pods with 1 MB each at
	// 50 ms were too much for another picker (llm-d issue 2118).
	d.between("scrape.interval", s.Interval, 100*time.Millisecond, time.Minute)
	d.between("scrape.timeout", s.Timeout, 10*time.Millisecond, time.Minute)
	for i, u := range s.Devices {
		if !httpURL(u) {
			d.bad(fmt.Sprintf("scrape.device_exporters[%d]", i), fmt.Sprintf("found %q", clip(u)), "a URL such as http://10.0.0.7:9400/metrics", "")
		}
	}
	d.within("decisions.rotate_size", c.Decisions.RotateSize, 1<<20, 1<<40)
	if c.Decisions.Keep < 1 || c.Decisions.Keep > 1000 {
		d.bad("decisions.keep", found(c.Decisions.Keep), "1 to 1000 files", "")
	}
	if !slices.Contains(LogLevels, c.LogLevel) {
		d.bad("log_level", fmt.Sprintf("found %q", clip(c.LogLevel)), "one of "+strings.Join(LogLevels, ", "), didYouMean(c.LogLevel, LogLevels))
	}
	if c.Envoy.EndpointsFile != "" {
		if c.Envoy.Cluster == "" {
			d.bad("envoy.cluster", errMissing.Error(), "the cluster name of Envoy's bootstrap", "")
		}
		if base := filepath.Base(c.Envoy.EndpointsFile); base == "." || base == "/" || strings.HasSuffix(c.Envoy.EndpointsFile, "/") {
			d.bad("envoy.endpoints_file", fmt.Sprintf("found %q", clip(c.Envoy.EndpointsFile)), "the path of a file", "")
		}
	}
}

func (d *decoder) checkListen(l Listen) {
	var taken []listener
	for _, x := range []struct{ key, addr string }{
		{"listen.ext_proc", l.ExtProc}, {"listen.health", l.Health}, {"listen.admin", l.Admin}, {"listen.metrics", l.Metrics},
	} {
		if x.addr == "" {
			if x.key == "listen.ext_proc" {
				d.bad(x.key, errMissing.Error(), "HOST:PORT or :PORT", "")
			}
			continue
		}
		if strings.HasPrefix(x.addr, "unix:") && x.key == "listen.admin" {
			continue
		}
		host, port, err := net.SplitHostPort(x.addr)
		if err == nil {
			err = listenable(host, port)
		}
		if err != nil {
			d.bad(x.key, fmt.Sprintf("found %q", clip(x.addr)), "HOST:PORT or :PORT", listenHint(x.addr))
			continue
		}
		if x.key == "listen.admin" && !loopback(host) {
			d.bad(x.key, fmt.Sprintf("found %q, which is not a loopback address", clip(x.addr)), "127.0.0.1:PORT, [::1]:PORT or unix:/PATH",
				"the admin API has no authentication")
		}
		this := listener{x.key, host, port}
		for _, other := range taken {
			// Health shares the port of ext_proc when it is written alike.
			if this.meets(other) && !(x.key == "listen.health" && x.addr == l.ExtProc) {
				d.bad(x.key, fmt.Sprintf("found %q, where %s listens too", x.addr, d.name(other.key)), "an address of its own", "")
				break
			}
		}
		taken = append(taken, this)
	}
}

type listener struct{ key, host, port string }

// meets reports whether the system would refuse one of two listeners. Port 0 lets
// it choose.
func (a listener) meets(b listener) bool {
	return a.port == b.port && a.port != "0" && (a.everywhere() || b.everywhere() || a.host == b.host)
}

func (a listener) everywhere() bool { return a.host == "" || a.host == "0.0.0.0" || a.host == "::" }

// checkFleet wants a pod of every file. It says so only where nothing else is
// wrong, for then that is why there is none.
func (d *decoder) checkFleet(c *Config) {
	if c.Path != "" && len(c.Pods) == 0 && len(d.problems) == 0 {
		d.bad("pods", "found none", `at least one, such as {name: vllm-0, address: "10.0.0.11:8000"}`, "")
	}
}

func listenable(host, port string) error {
	if p, err := strconv.Atoi(port); err != nil || p < 0 || p > 65535 {
		return errWrong
	}
	if host == "" || host == "localhost" {
		return nil
	}
	_, err := netip.ParseAddr(host)
	return err
}

func listenHint(addr string) string {
	if _, err := parsePort(addr); err == nil {
		return fmt.Sprintf("write \":%s\"", addr)
	}
	return ""
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

func (d *decoder) within(key string, v, low, high Bytes) {
	if v < low || v > high {
		d.bad(key, found(v), fmt.Sprintf("%v to %v", low, high), "")
	}
}

func (d *decoder) between(key string, v, low, high time.Duration) {
	if v < low || v > high {
		d.bad(key, found(v), fmt.Sprintf("%v to %v", low, high), "")
	}
}

// found is the first half of a message about a value.
func found(v any) string { return fmt.Sprint("found ", v) }

func didYouMean(s string, names []string) string {
	if near := spelling.Nearest(s, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}
