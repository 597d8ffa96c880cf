package top

import (
	"strings"
	"testing"
	"time"
)

// Nobody counts requests where no picker is asked: what a Snapshot of engines or of a
// recording has as 0 is shown as not known, and not as nothing.
func TestNothingIsPlacedWithoutAPicker(t *testing.T) {
	for _, source := range []string{"engines", "recording"} {
		r := newRig(t, 200, 40)
		r.fleet.Source = source
		r.fleet.Index.Bytes, r.fleet.Index.Blocks = 0, 38
		for i := range r.fleet.Pods {
			p := &r.fleet.Pods[i]
			p.Load.InFlight, p.Load.Waiting, p.Load.QueueMs, p.Breaker.Open, p.Breaker.Errors = 0, 0, 0, false, 0
			p.Breaker.Waiting, p.Breaker.Limit, p.Served.Picks = 0, 64, 0
		}
		r.frame(0)
		r.frame(time.Second)
		r.has("?/64", "blocks (<1%)  ? B/1.0 GiB")
		r.hasNot("0/64")
		for _, l := range strings.Split(r.plain(), "\n") {
			if f := strings.Fields(strings.TrimPrefix(l, ">")); len(f) > 7 && strings.HasPrefix(f[0], "vllm-") && f[1] == "ok" && (f[2] != "?" || f[3] != "?" || f[6] != "?" || f[7] != "?") {
				t.Errorf("%s: REQ/s, SHARE, FLY and QUEUE are known: %s", source, l)
			}
		}
		r.keys("enter")
		r.has("? picks/s", "? picks since it joined", "ours: ?", "(scrape.device_exporters)")
	}
}

// HITS tells of the time there are frames of, and of no more.
func TestHitsSayOfWhichTime(t *testing.T) {
	r := newRig(t, 120, 40)
	r.fleet.Hits.Queried = 0
	r.frame(0)
	r.has("no prompt tokens since the start")
	r.frame(5 * time.Second)
	r.has("no prompt tokens in the 5.0 s that top has seen")
	r.frame(50 * time.Second)
	r.has("no prompt tokens in the 55 s that top has seen")
	r.frame(5 * time.Second)
	r.has("no prompt tokens in the last minute")
	if strings.Contains(r.plain(), "that top has seen") {
		t.Error(r.plain())
	}
}
