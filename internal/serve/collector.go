package serve

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// feedCounters is what the collector reads of the feed.
type feedCounters interface {
	Counters() []feed.Counters
	Scrapes() *feed.ScrapeCounters
	Refused() map[string]uint64
}

// collector reads the state of the fleet when the metrics page is asked for.
// Series exist only for pods that are in the fleet: nothing has to be deleted
// when one leaves.
type collector struct {
	picker *Picker
	feed   feedCounters
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("eppctl_"+name, help, labels, nil)
}

var (
	descInFlight  = desc("pod_in_flight", "Requests placed on the pod and not ended.", "pod")
	descWaiting   = desc("pod_waiting", "Of these, the ones before their first byte.", "pod")
	descQueue     = desc("pod_queue_seconds", "Estimated time until the pod has answered everything placed on it.", "pod")
	descBreaker   = desc("pod_breaker_open", "1 while the pod is left out for its queue.", "pod")
	descFailing   = desc("pod_failing", "1 while the pod is left out for its server errors.", "pod")
	descTelemetry = desc("pod_telemetry_fresh", "1 fresh, 0.5 stale, 0 unknown.", "pod")
	descSync      = desc("pod_events_synced", "1 when every event since the engine's start is applied.", "pod", "rank")
	descEvents    = desc("events_total", "KV events applied.", "pod", "rank", "kind")
	descBatches   = desc("event_batches_total", "Event batches received.", "pod", "rank")
	descLost      = desc("event_batches_lost_total", "Event batches neither received nor replayed.", "pod", "rank")
	descSkips     = desc("events_skipped_total", "Events that could not be read.", "pod", "rank", "reason")
	descBadBatch  = desc("event_batches_undecodable_total", "Messages that were no batch.", "pod", "rank")
	descDrops     = desc("event_queue_drops_total", "Batches dropped because the index was behind.", "pod", "rank")
	descFaults    = desc("event_connection_faults_total", "Event connections that failed or ended.", "pod", "rank", "fault")
	descPurges    = desc("event_purges_total", "Times the blocks of a rank were dropped.", "pod", "rank", "cause")
	descReplays   = desc("event_replays_total", "Replays by outcome.", "pod", "rank", "outcome")
	descRefused   = desc("event_publishers_refused_total", "Publishers that dialled us and were refused.", "reason")
	descScrapes   = desc("scrapes_total", "Metrics scrapes by result.", "result")
	descStreams   = desc("ext_proc_streams_open", "Open ext_proc streams.")
	descLoose     = desc("requests_end_unknown", "Ended streams whose request may still run.")
	descPods      = desc("pods", "Pods in the fleet.")
)

// Describe sends nothing: label values come and go with the fleet, and a
// registry takes that as "unchecked".
func (c *collector) Describe(chan<- *prometheus.Desc) {}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	v, now := c.picker.fleet.View(), c.picker.now()
	limits, depth := c.picker.rules.Load().limits(), c.picker.rules.Load().policy.Breaker.Depth
	gauge(out, descPods, float64(len(v.Pods.Pods)))
	for _, p := range v.Pods.Pods {
		collectPod(out, &v, p, now, limits, depth)
	}
	s := v.Index.Stats()
	collectIndex(out, &s)
	if c.picker.streams != nil {
		open, loose := c.picker.streams()
		gauge(out, descStreams, float64(open))
		gauge(out, descLoose, float64(loose))
	}
	if c.feed != nil {
		c.collectFeed(out)
	}
}

func collectPod(out chan<- prometheus.Metric, v *view.View, p *pod.Pod, now int64, limits telemetry.Limits, depth int) {
	name, l := p.Spec.Name, v.Load.Load(p, now)
	gauge(out, descInFlight, float64(l.InFlight), name)
	gauge(out, descWaiting, float64(l.Waiting), name)
	gauge(out, descQueue, l.Queue.Seconds(), name)
	gauge(out, descBreaker, truth(l.Waiting >= depth), name)
	gauge(out, descFailing, truth(l.Faults.Out), name)
	gauge(out, descTelemetry, float64(v.Telemetry.Get(p.ID).State(now, limits))/float64(telemetry.Fresh), name)
	for rank, m := range p.Members {
		r := strconv.Itoa(rank)
		gauge(out, descSync, truth(v.Sync.Get(m).State == view.Synced), name, r)
		if s, ok := v.Index.Member(m); ok {
			collectMember(out, &s, name, r)
		}
	}
}

func (c *collector) collectFeed(out chan<- prometheus.Metric) {
	for _, f := range c.feed.Counters() {
		pod, rank := f.Pod, strconv.Itoa(f.Rank)
		count(out, descBatches, f.Batches, pod, rank)
		count(out, descLost, f.Lost, pod, rank)
		count(out, descBadBatch, f.Undecodable, pod, rank)
		count(out, descDrops, f.QueueDrops, pod, rank)
		count(out, descEvents, f.Stored, pod, rank, "stored")
		count(out, descEvents, f.Removed, pod, rank, "removed")
		count(out, descEvents, f.Cleared, pod, rank, "cleared")
		for _, x := range []struct {
			desc  *prometheus.Desc
			words map[string]uint64
		}{{descSkips, f.Skips}, {descFaults, f.Faults}, {descPurges, f.Purges}, {descReplays, f.Replays}} {
			for word, n := range x.words {
				count(out, x.desc, n, pod, rank, word)
			}
		}
	}
	for why, n := range c.feed.Refused() {
		count(out, descRefused, n, why)
	}
	s := c.feed.Scrapes()
	count(out, descScrapes, s.Good.Load(), "good")
	count(out, descScrapes, s.Failed.Load(), "failed")
}

func gauge(out chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func count(out chan<- prometheus.Metric, d *prometheus.Desc, n uint64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
