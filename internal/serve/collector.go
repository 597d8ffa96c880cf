package serve

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pick"
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
	descInFlight   = desc("pod_in_flight", "Requests placed on the pod and not ended.", "pod")
	descWaiting    = desc("pod_waiting", "Of these, the ones before their first token.", "pod")
	descQueue      = desc("pod_queue_seconds", "Estimated time until the pod has answered everything placed on it.", "pod")
	descBreaker    = desc("pod_breaker_open", "1 while the pod is left out for its queue.", "pod")
	descFailing    = desc("pod_failing", "1 while the pod is left out for server errors or unanswered requests.", "pod")
	descCircuit    = desc("pod_circuit_state", "1 for the state of the pod's circuit (closed, open, half-open), 0 for the others.", "pod", "state")
	descProbeIn    = desc("pod_probe_seconds", "Time until a probe may be placed on a pod whose circuit is not closed.", "pod")
	descProbing    = desc("pod_probes", "Probes under way.", "pod")
	descPace       = desc("pod_pace_factor", "Prefill time observed on the pod over that of the model's configuration; 0 while nothing is known.", "pod")
	descPaceSure   = desc("pod_pace_sure", "How far that is believed, 0 to 1.", "pod")
	descRate       = desc("model_prefill_tokens_per_second", "Prefill rate that decisions use: configured, and learned as far as it is sure.", "model")
	descRateSure   = desc("model_prefill_sure", "How far the learned rate of the model is believed, 0 to 1.", "model")
	descTelemetry  = desc("pod_telemetry_fresh", "1 fresh, 0.5 stale, 0 unknown.", "pod")
	descSync       = desc("pod_events_state", "1 for the state the rank's event stream is in, 0 for the others.", "pod", "rank", "state")
	descSyncAge    = desc("pod_events_state_seconds", "How long the rank's event stream has been in its state.", "pod", "rank")
	descMissing    = desc("pod_events_missing", "Event batches that are missing and may still be had.", "pod", "rank")
	descEventAge   = desc("pod_events_age_seconds", "Time since the rank's last event batch.", "pod", "rank")
	descLag        = desc("pod_events_lag_seconds", "By how much the last batch came later than the promptest.", "pod", "rank")
	descEvents     = desc("events_total", "KV events applied.", "pod", "rank", "kind")
	descBatches    = desc("event_batches_total", "Event batches received.", "pod", "rank")
	descLost       = desc("event_batches_lost_total", "Event batches neither received nor replayed.", "pod", "rank")
	descSkips      = desc("events_skipped_total", "Events that could not be read.", "pod", "rank", "reason")
	descUnknown    = desc("events_unknown_total", "Tags, fields and slots of events that this version does not know; at most 32 names per rank.", "pod", "rank", "name")
	descBadBatch   = desc("event_batches_undecodable_total", "Messages that were no batch.", "pod", "rank")
	descDrops      = desc("event_queue_drops_total", "Batches dropped because the index was behind.", "pod", "rank")
	descConns      = desc("event_connections_total", "Event connections made.", "pod", "rank")
	descPeer       = desc("event_publisher_info", "1, with the ZMTP version the publisher greets with.", "pod", "rank", "zmtp")
	descCommands   = desc("event_commands_total", "ZMTP commands received: heartbeats, mostly.", "pod", "rank")
	descEventBytes = desc("event_bytes_total", "Bytes of the messages received.", "pod", "rank")
	descShapes     = desc("event_messages_misshapen_total", "Messages that are not topic, sequence and payload.", "pod", "rank", "shape")
	descRanks      = desc("event_rank_mismatches_total", "Batches that name another rank than their socket's.", "pod", "rank")
	descMissed     = desc("event_batches_missed_total", "Event batches that did not come live; those replayed too.", "pod", "rank")
	descTwice      = desc("event_batches_duplicate_total", "Event batches that came twice and count once.", "pod", "rank")
	descRounds     = desc("event_replay_rounds_total", "Requests sent to the replay port.", "pod", "rank")
	descFaults     = desc("event_connection_faults_total", "Event connections that failed or ended.", "pod", "rank", "fault")
	descPurges     = desc("event_purges_total", "Times the blocks of a rank were dropped.", "pod", "rank", "cause")
	descReplays    = desc("event_replays_total", "Replays by outcome.", "pod", "rank", "outcome")
	descRefused    = desc("event_publishers_refused_total", "Publishers that dialled us and were refused.", "reason")
	descScrapes    = desc("scrapes_total", "Metrics scrapes by result.", "result")
	descStreams    = desc("ext_proc_streams_open", "Open ext_proc streams.")
	descLoose      = desc("requests_end_unknown", "Ended streams whose request may still run.")
	descTokenizer  = desc("tokenizer_state", "1 for the state a model's provider of token ids is in (ready, loading, refuted, unloadable, untried, failing), 0 for the others.", "model", "provider", "state")
	descParity     = desc("parity_state", "1 for what is known of a model's native token ids (passed = those of the engines, failed, not-run), 0 for the others.", "model", "state")
	descProbes     = desc("parity_probes", "Probes of the latest round that tells of the state, by result.", "model", "result")
	descConfig     = desc("config_last_reload_successful", "1 while the configuration file is what is in force or can be, 0 while an edit stands there that was rejected.")
	descPicks      = desc("pod_picks_total", "Requests that were given to the pod.", "pod")
	descPods       = desc("pods", "Pods in the fleet.")
)

// Describe sends nothing: label values come and go with the fleet, and a
// registry takes that as "unchecked".
func (c *collector) Describe(chan<- *prometheus.Desc) {}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	v, now := c.picker.fleet.View(), c.picker.now()
	limits, depth := c.picker.rules.Load().limits(), c.picker.rules.Load().policy.Breaker.Depth
	gauge(out, descPods, float64(len(v.Pods.Pods)))
	gauge(out, descConfig, truth(!c.picker.met.configBad.Load()))
	for _, p := range v.Pods.Pods {
		count(out, descPicks, c.picker.tallies.of(p).picks.Load(), p.Spec.Name)
		collectPod(out, &v, p, now, limits, depth)
	}
	collectRates(out, &v, c.picker.rules.Load().policy)
	s := v.Index.Stats()
	collectIndex(out, &s)
	if c.picker.streams != nil {
		open, loose := c.picker.streams()
		gauge(out, descStreams, float64(open))
		gauge(out, descLoose, float64(loose))
	}
	if c.picker.tokenizers != nil {
		collectTokenizers(out, c.picker.tokenizers())
	}
	if c.feed != nil {
		c.collectFeed(out)
	}
}

func collectTokenizers(out chan<- prometheus.Metric, models []view.TokenizerState) {
	for _, m := range models {
		for _, p := range m.Providers {
			for _, state := range view.ProviderStates {
				gauge(out, descTokenizer, truth(p.State == state), m.Model, p.Name, state)
			}
			if p.Parity != nil {
				collectParity(out, m.Model, p.Parity)
			}
		}
	}
}

func collectPod(out chan<- prometheus.Metric, v *view.View, p *pod.Pod, now int64, limits telemetry.Limits, depth int) {
	name, l := p.Spec.Name, v.Load.Load(p, now)
	gauge(out, descInFlight, float64(l.InFlight), name)
	gauge(out, descWaiting, float64(l.Waiting), name)
	gauge(out, descQueue, l.Queue.Seconds(), name)
	gauge(out, descBreaker, truth(l.Waiting >= depth), name)
	collectCircuit(out, &l.Circuit, name)
	gauge(out, descPace, l.Pace.Factor, name)
	gauge(out, descPaceSure, l.Pace.Sure, name)
	gauge(out, descTelemetry, float64(v.Telemetry.Get(p.ID).State(now, limits))/float64(telemetry.Fresh), name)
	for rank, m := range p.Members {
		r := strconv.Itoa(rank)
		collectSync(out, v.Sync.Get(m), now, name, r)
		if s, ok := v.Index.Member(m); ok {
			collectMember(out, &s, name, r)
		}
	}
}

// collectRates shows the models that the pods serve.
func collectRates(out chan<- prometheus.Metric, v *view.View, pol *pick.Policy) {
	seen := map[string]bool{}
	for _, p := range v.Pods.Pods {
		if m := p.Spec.Model; m != "" && !seen[m] {
			seen[m] = true
			rate, sure := pol.PrefillRate(v.Load, m)
			gauge(out, descRate, rate, m)
			gauge(out, descRateSure, sure, m)
		}
	}
}

func collectCircuit(out chan<- prometheus.Metric, c *view.Circuit, name string) {
	gauge(out, descFailing, truth(c.Out), name)
	for _, st := range view.CircuitStates {
		gauge(out, descCircuit, truth(c.State == st), name, st.String())
	}
	gauge(out, descProbeIn, c.ProbeIn.Seconds(), name)
	gauge(out, descProbing, float64(c.Probing), name)
}

// collectSync shows a stream's state, nothing where there is no stream.
func collectSync(out chan<- prometheus.Metric, s view.Sync, now int64, name, rank string) {
	if s.State == view.NoEvents {
		return
	}
	for _, st := range view.SyncStates {
		gauge(out, descSync, truth(s.State == st), name, rank, st.String())
	}
	gauge(out, descSyncAge, time.Duration(now-s.Since).Seconds(), name, rank)
	gauge(out, descMissing, float64(s.Missing), name, rank)
	if s.LastEvent > 0 {
		gauge(out, descEventAge, time.Duration(now-s.LastEvent).Seconds(), name, rank)
	}
}

func (c *collector) collectFeed(out chan<- prometheus.Metric) {
	for _, f := range c.feed.Counters() {
		pod, rank := f.Pod, strconv.Itoa(f.Rank)
		count(out, descBatches, f.Batches, pod, rank)
		count(out, descLost, f.Lost, pod, rank)
		count(out, descBadBatch, f.Undecodable, pod, rank)
		count(out, descDrops, f.QueueDrops, pod, rank)
		count(out, descConns, f.Connections, pod, rank)
		count(out, descCommands, f.Commands, pod, rank)
		count(out, descEventBytes, f.Bytes, pod, rank)
		count(out, descRanks, f.RankMismatch, pod, rank)
		count(out, descMissed, f.Missed, pod, rank)
		count(out, descTwice, f.Duplicates, pod, rank)
		count(out, descRounds, f.ReplayRounds, pod, rank)
		if f.Peer != "" {
			gauge(out, descPeer, 1, pod, rank, f.Peer)
			gauge(out, descLag, f.Lag.Seconds(), pod, rank)
		}
		count(out, descEvents, f.Stored, pod, rank, "stored")
		count(out, descEvents, f.Removed, pod, rank, "removed")
		count(out, descEvents, f.Cleared, pod, rank, "cleared")
		for _, x := range []struct {
			desc  *prometheus.Desc
			words map[string]uint64
		}{{descSkips, f.Skips}, {descUnknown, f.Unknown}, {descShapes, f.WrongShape}, {descFaults, f.Faults}, {descPurges, f.Purges}, {descReplays, f.Replays}} {
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

func collectParity(out chan<- prometheus.Metric, model string, p *view.Parity) {
	for _, state := range view.ParityStates {
		gauge(out, descParity, truth(p.State == state), model, state)
	}
	gauge(out, descProbes, float64(p.Compared-p.Differed), model, "equal")
	gauge(out, descProbes, float64(p.Differed), model, "differs")
	gauge(out, descProbes, float64(p.Skipped), model, "skipped")
}
