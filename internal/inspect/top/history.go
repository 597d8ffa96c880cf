package top

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect"
)

// Bounds of what is kept to step back through: ten minutes at the usual interval,
// and no more memory than that, whatever the size of the fleet.
const (
	keptFrames = 600
	keptBytes  = 64 << 20
)

// mostRows is four times what serve lists at most: whatever else answers there, the
// screen stays quick.
const mostRows = 1024

// frame is one answer of the admin API, as it came, and its counters. Most frames
// are never looked at again, so that only the text is kept: it is read once more
// for the few that are.
type frame struct {
	raw    []byte
	got    time.Time // by our clock, which does not step
	counts counts
}

// counts are the counters of one frame.
type counts struct {
	run             string
	routed, refused uint64
	evicted         uint64
	hits            view.Hits
	pods            map[string]podCounts
}

type podCounts struct {
	epoch          uint64
	served         view.PodServed
	batches, bytes uint64 // of events, of all ranks
	waiting, kv    rate   // as the metrics page told
	// The engine's own counters, of all its requests; nil = not known.
	queried, hit *float64
}

// reported is what engines say of the prompt tokens that they were asked for
// meanwhile: in their responses, where those are shown to serve, else in their
// metrics.
func reported(from, to podCounts) (hit, queried float64) {
	if n := grown(from.served.EngineQueried, to.served.EngineQueried); n > 0 {
		return grown(from.served.EngineCached, to.served.EngineCached), n
	}
	if from.queried == nil || to.queried == nil || from.hit == nil || to.hit == nil || *to.queried < *from.queried || *to.hit < *from.hit {
		return 0, 0
	}
	return *to.hit - *from.hit, *to.queried - *from.queried
}

// newFrame is the frame of an answer that says s.
func newFrame(raw []byte, s *view.Snapshot, got time.Time) *frame {
	f := &frame{raw: raw, got: got, counts: counts{
		run: s.Run, routed: s.Totals.Routed, refused: s.Totals.Refused, evicted: s.Index.Evicted, hits: s.Hits,
		pods: make(map[string]podCounts, len(s.Pods)),
	}}
	for i := range s.Pods {
		p := &s.Pods[i]
		f.counts.pods[p.Name] = newPodCounts(p)
	}
	return f
}

func decode(raw []byte) (*view.Snapshot, error) {
	s := &view.Snapshot{}
	if err := json.Unmarshal(raw, s); err != nil || s.Kind != "Snapshot" {
		return nil, &inspect.Error{
			Kind: inspect.Failed, Code: "E_ANSWER", What: "the answer is no Snapshot", Err: err,
			Hint: "does eppctl serve listen there? try: --addr HOST:PORT",
		}
	}
	if len(s.Pods) > mostRows {
		s.Pods, s.Truncated = s.Pods[:mostRows], true
	}
	s.Picks = s.Picks[:min(len(s.Picks), mostRows)]
	return s, nil
}

func newPodCounts(p *view.PodState) podCounts {
	t := &p.Telemetry
	c := podCounts{epoch: p.Epoch, served: p.Served, waiting: gauge(t.Waiting), kv: gauge(t.KVUsage), queried: t.CacheQueried, hit: t.CacheHit}
	for i := range p.Ranks {
		if e := p.Ranks[i].Events; e != nil {
			c.batches, c.bytes = c.batches+e.Batches, c.bytes+e.Bytes
		}
	}
	return c
}

func gauge(v *float64) rate {
	if v == nil {
		return rate{}
	}
	return rate{*v, true}
}

// history is the frames that are kept, oldest first.
type history struct {
	frames []*frame
	bytes  int
	gone   int // frames dropped so far
}

// add keeps a frame. One that comes sooner than apart after the last takes its place:
// of so short a time there is no rate.
func (h *history) add(f *frame, apart time.Duration) {
	if last := len(h.frames) - 1; last > 0 && apart > 0 && f.got.Sub(h.frames[last].got) < apart {
		h.bytes += len(f.raw) - len(h.frames[last].raw)
		h.frames[last] = f
		return
	}
	h.frames = append(h.frames, f)
	h.bytes += len(f.raw)
	for len(h.frames) > 1 && (len(h.frames) > keptFrames || h.bytes > keptBytes) {
		h.bytes -= len(h.frames[0].raw)
		h.frames[0] = nil
		h.frames, h.gone = h.frames[1:], h.gone+1
	}
}

// newest is the number of the newest frame; numbers stay as frames are dropped.
// -1 = there is none.
func (h *history) newest() int { return h.gone + len(h.frames) - 1 }

// clamp is the number of a kept frame, the nearest to n.
func (h *history) clamp(n int) int { return min(max(n, h.gone), h.newest()) }

func (h *history) at(n int) *frame { return h.frames[n-h.gone] }

// base is the frame with which frame n is compared for rates over a window: the
// newest one that is as old, or the oldest of the same process. nil = there is
// nothing to compare with.
func (h *history) base(n int, window time.Duration) *frame {
	of := h.at(n)
	var best *frame
	for i := n - 1; i >= h.gone; i-- {
		f := h.at(i)
		if f.counts.run != of.counts.run {
			break
		}
		best = f
		if of.got.Sub(f.got) >= window {
			break
		}
	}
	return best
}

// requests are the rates of requests from frame to frame, up to frame n.
func (h *history) requests(n, most int) (list []float64) {
	for i := max(h.gone+1, n-most+1); i <= n; i++ {
		if r := between(h.at(i-1), h.at(i)).per(func(c *counts) uint64 { return c.routed + c.refused }); r.ok {
			list = append(list, r.v)
		}
	}
	return list
}

// pair is two frames of one process; from may be nil.
type pair struct{ from, to *frame }

func between(from, to *frame) pair {
	if from != nil && (from.counts.run != to.counts.run || !to.got.After(from.got)) {
		from = nil
	}
	return pair{from, to}
}

// length is the time between the two; 0 = there is one.
func (p pair) length() time.Duration {
	if p.from == nil {
		return 0
	}
	return p.to.got.Sub(p.from.got)
}

func (p pair) seconds() float64 { return p.length().Seconds() }

// per is the rate of a counter, per second.
func (p pair) per(of func(*counts) uint64) rate {
	if p.from == nil {
		return rate{}
	}
	return rate{grown(of(&p.from.counts), of(&p.to.counts)) / p.seconds(), true}
}

// pod is what a pod's counters grew by. One that joined in between counts from
// zero.
func (p pair) pod(name string) (from, to podCounts, ok bool) {
	to, there := p.to.counts.pods[name]
	if p.from == nil || !there {
		return from, to, false
	}
	if was := p.from.counts.pods[name]; was.epoch == to.epoch {
		from = was
	}
	return from, to, true
}

func grown(from, to uint64) float64 { return float64(to - min(from, to)) }

// clock is the time of day of a snapshot.
func clock(at string, in *time.Location) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return unknown
	}
	return t.In(in).Format("15:04:05")
}

func (h *history) String() string {
	return fmt.Sprintf("%d frames, %s", len(h.frames), size(int64(h.bytes)))
}
