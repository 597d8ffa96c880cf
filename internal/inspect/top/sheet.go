package top

import (
	"slices"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/view"
)

// The windows of rates. Picks come in bursts: over ten seconds their rate stands
// still enough to be read. Shares are of a minute, which is as long as a herd
// takes to be one.
const (
	rateWindow  = 10 * time.Second
	shareWindow = time.Minute
)

// sheet is what one frame shows: the snapshot, and what it takes several frames to
// know. It is made once per frame and not per drawing.
type sheet struct {
	*view.Snapshot
	got       time.Time // of the frame
	pods      []*podRow
	ranks     []*rankRow
	ids       []*idsRow
	picks     []*view.RecentPick
	states    map[string]int
	requests  rate
	refused   rate
	evicted   rate
	events    rate
	funnel    funnel
	imbalance rate
	recent    []float64 // requests per second, from frame to frame
	lost      uint64    // event batches, of all ranks
	behind    int       // ranks whose stream is not live
	fullest   int       // blocks of the pod that holds most
	longest   float64   // queue of all pods, by their metrics
}

// funnel is where prompt tokens went in the last minute, or since the start when
// there is nothing to compare with.
type funnel struct {
	queried, best, selected float64
	engine                  rate          // share of the prompts that engines tell of
	over                    time.Duration // 0 = since the start
}

// podRow is a pod, with its rates.
type podRow struct {
	*view.PodState
	ours   bool // a picker counts what it places here
	at     int  // rank among the pods by name, for stable order
	picks  rate // per second
	share  rate // of the picks
	hit    rate // share of the prompt tokens that were counted as cached
	engine rate // share that the engine reports as cached
	depth  depths
	// reported are the prompt tokens that the engine found cached, of how many.
	reported [2]float64
	events   rate   // batches per second
	bytes    rate   // of events, per second
	blocks   [4]int // by tier
	sync     string // the worst of its ranks
	eventMs  *int64 // age of its last event
}

// rankRow is one rank's event stream.
type rankRow struct {
	pod  *podRow
	rank *view.Rank
}

// newSheet reads frame n of a history.
func newSheet(h *history, n int, s *view.Snapshot) *sheet {
	f := h.at(n)
	sh := &sheet{Snapshot: s, got: f.got, ids: idsRows(s), states: map[string]int{}, recent: h.requests(n, keptFrames)}
	near, far := between(h.base(n, rateWindow), f), between(h.base(n, shareWindow), f)
	sh.requests = near.per(func(c *counts) uint64 { return c.routed + c.refused })
	sh.refused = near.per(func(c *counts) uint64 { return c.refused })
	sh.evicted = near.per(func(c *counts) uint64 { return c.evicted })
	sh.funnel = newFunnel(far)
	total, hit, queried := 0.0, 0.0, 0.0
	for i := range s.Pods {
		r := newPodRow(&s.Pods[i], near, far)
		r.at, r.ours = i, placing(s)
		if !r.ours {
			r.picks, r.share = rate{}, rate{}
		}
		sh.pods = append(sh.pods, r)
		sh.states[r.word()]++
		hit, queried = hit+r.reported[0], queried+r.reported[1]
		if r.share.ok {
			total += r.share.v
		}
		if r.events.ok {
			sh.events = rate{sh.events.v + r.events.v, true}
		}
		if w := gauge(r.Telemetry.Waiting); w.ok {
			sh.longest = max(sh.longest, w.v)
		}
		sh.fullest = max(sh.fullest, r.blocks[0]+r.blocks[1]+r.blocks[2]+r.blocks[3])
		for k := range r.Ranks {
			x := &r.Ranks[k]
			sh.ranks = append(sh.ranks, &rankRow{r, x})
			sh.lost += x.Lost
			if x.Sync != view.Live.String() && x.Sync != view.NoEvents.String() {
				sh.behind++
			}
		}
	}
	sh.shares(total)
	sh.funnel.engine = part(hit, queried)
	for i := range s.Picks {
		sh.picks = append(sh.picks, &s.Picks[i])
	}
	return sh
}

// shares turns the picks of each pod into its part of all of them. The imbalance
// is the greatest part over the mean one.
func (s *sheet) shares(total float64) {
	most := 0.0
	for _, r := range s.pods {
		if r.share.ok = r.share.ok && total > 0; r.share.ok {
			r.share.v /= total
			most = max(most, r.share.v)
		}
	}
	if most > 0 {
		s.imbalance = rate{most * float64(len(s.pods)), true}
	}
}

func newPodRow(p *view.PodState, near, far pair) *podRow {
	r := &podRow{PodState: p, sync: syncOf(p.Ranks)}
	if from, to, ok := near.pod(p.Name); ok {
		r.picks = rate{grown(from.served.Picks, to.served.Picks) / near.seconds(), true}
		r.events = rate{grown(from.batches, to.batches) / near.seconds(), true}
		r.bytes = rate{grown(from.bytes, to.bytes) / near.seconds(), true}
	}
	// Since the pod joined, where there is nothing to compare with: a single frame
	// tells of hits all the same.
	from, to, ok := far.pod(p.Name)
	if !ok {
		to = podCounts{served: p.Served}
	}
	r.share = rate{grown(from.served.Picks, to.served.Picks), true}
	r.hit = part(grown(from.served.Cached, to.served.Cached), grown(from.served.Queried, to.served.Queried))
	r.depth = newDepths(&from.served.Depths, &to.served.Depths)
	r.reported[0], r.reported[1] = reported(from, to)
	r.engine = part(r.reported[0], r.reported[1])
	for i := range p.Ranks {
		x := &p.Ranks[i]
		for t, n := range tiers(x) {
			r.blocks[t] += n
		}
		if x.EventAge != nil && (r.eventMs == nil || *x.EventAge < *r.eventMs) {
			r.eventMs = x.EventAge
		}
	}
	return r
}

func newFunnel(p pair) funnel {
	var from view.Hits
	if p.from != nil {
		from = p.from.counts.hits
	}
	to := p.to.counts.hits
	return funnel{
		queried: grown(from.Queried, to.Queried), best: grown(from.BestAvailable, to.BestAvailable), selected: grown(from.Selected, to.Selected),
		over: p.length(),
	}
}

// placing reports that a snapshot is of a picker, which counts what it places. Of engines
// that are followed without one, and of a recording, its zeros are no numbers.
func placing(s *view.Snapshot) bool { return s.Source != "engines" && s.Source != "recording" }

// placed is a number of the picker's own.
func (r *podRow) placed(s string) string {
	if !r.ours {
		return unknown
	}
	return s
}

func part(of, all float64) rate {
	if all <= 0 {
		return rate{}
	}
	return rate{of / all, true}
}

// badness orders the states of event streams, the worst first.
var badness = []string{"down", "stale", "gap", "partial", "connecting", "syncing", "live", "no-events"}

// worst is the rank whose stream is the worst; nil = there is none.
func worst(ranks []view.Rank) (w *view.Rank) {
	most := len(badness)
	for i := range ranks {
		if k := slices.Index(badness, ranks[i].Sync); w == nil || k < most {
			w, most = &ranks[i], k
		}
	}
	return w
}

func syncOf(ranks []view.Rank) string {
	if w := worst(ranks); w != nil {
		return view.SyncLabel(w.Sync, w.Missing)
	}
	return "-"
}

// faulty reports that something is wrong with the pod.
func (r *podRow) faulty() bool {
	return r.State != "ok" || r.Draining || r.sync != view.Live.String() && r.sync != view.NoEvents.String()
}

// matches reports whether a name passes the filter: a part of it, or with ! before
// it no part of it.
func matches(name, filter string) bool {
	part, not := strings.CutPrefix(filter, "!")
	return filter == "" || strings.Contains(strings.ToLower(name), strings.ToLower(part)) != not || not && part == ""
}
