// Package telemetry turns an engine's metrics page into one Sample and keeps the
// latest of every pod. Unknown is never zero and never idle.
package telemetry

import "github.com/eppctl/eppctl/internal/core/pod"

// Value is a number that may be unknown, with the metric it came from.
type Value struct {
	V      float64
	Known  bool
	Metric string // name on the page, "" when unknown
	// At is the scrape (ns) the number comes from when that is older than the
	// Sample it stands in: the page lacked the metric since. 0 = the Sample's.
	At int64
}

// LoRA is what the page says about adapters that are active now. Active is not
// resident: an idle loaded adapter is absent.
type LoRA struct {
	Known   bool     // the page has the list of names at all
	Max     int      // adapters that fit at once, 0 = not told
	Running []string // sorted
	Waiting []string // sorted
	// SlotsUsed and SlotsTotal: SGLang tells counts and no names.
	SlotsUsed, SlotsTotal Value
}

// Sample is one good scrape of one pod: the specification's EngineTelemetry.
// It is immutable once it is on the Board.
type Sample struct {
	Engine  pod.Engine
	At      int64 // ns, clock of the scraper: when the page was asked for
	Waiting Value // requests accepted, not executing
	Running Value // requests executing
	KVUsage Value // 0..1, share of KV blocks held by running requests
	// KVEstimate marks KVUsage as the Triton hit/miss heuristic.
	KVEstimate   bool
	KVBlockSize  Value // tokens; information only, KV events tell the real one
	KVBlocks     Value // blocks of one rank's pool
	CacheQueried Value // tokens, counter
	CacheHit     Value // tokens, counter
	Preempted    Value // counter
	LoRA         LoRA
	Asleep       bool
	CacheOff     bool  // the engine says that prefix caching is off: no events will come
	ProcessStart Value // Unix seconds; a change means a restarted engine
	Clamped      int   // values on this page above their upper bound, cut to it
	// Hardware health, from the device exporter where there is one.
	Device Device

	// lookups are Triton's response-cache counters, kept for the difference to
	// the next scrape.
	lookups lookups
}

// Device is the health of a pod's accelerators; the worst of several.
type Device struct {
	Known       bool
	Utilisation Value // 0..1
	SlowDown    Value // >= 1: factor by which the device is slower than healthy ones
	Throttled   bool  // thermal or power-brake throttling
	Critical    bool  // serving, but failing a health watch
	Fatal       bool  // XID or row-remap failure of the fatal set
	Why         string
	// Missing names the health signals the exporter does not publish: unknown,
	// not healthy.
	Missing []string
}

// values lists the numbers of a Sample that age one by one. The process start
// is not among them: an earlier page cannot vouch for the process of this one.
func (s *Sample) values() []*Value {
	return []*Value{
		&s.Waiting, &s.Running, &s.KVUsage, &s.KVBlockSize, &s.KVBlocks,
		&s.CacheQueried, &s.CacheHit, &s.Preempted,
		&s.LoRA.SlotsUsed, &s.LoRA.SlotsTotal,
	}
}

// Carry completes s from prev, the sample before it: a number that the new page
// lacks keeps its last value until it is maxAge (ns) old. A metric that drops
// out for one scrape must not turn a loaded pod into one of unknown load.
func (s *Sample) Carry(prev *Sample, maxAge int64) {
	if prev == nil || prev.Engine != s.Engine {
		return
	}
	usage := s.KVUsage.Known
	old := prev.values()
	for i, v := range s.values() {
		if v.Known || !old[i].Known {
			continue
		}
		at := old[i].At
		if at == 0 {
			at = prev.At
		}
		if s.At-at <= maxAge {
			*v = *old[i]
			v.At = at
		}
	}
	if !usage && s.KVUsage.Known {
		s.KVEstimate = prev.KVEstimate
	}
}

// Restarted tells why s must come from another engine process than prev, or "".
// A page without counters and start time proves nothing either way.
func (s *Sample) Restarted(prev *Sample) string {
	if prev == nil || prev.Engine != s.Engine {
		return ""
	}
	if a, b := prev.ProcessStart, s.ProcessStart; a.Known && b.Known && a.V != b.V {
		return "process start time changed"
	}
	for _, c := range [...]struct{ was, is Value }{
		{prev.CacheQueried, s.CacheQueried}, {prev.CacheHit, s.CacheHit}, {prev.Preempted, s.Preempted},
	} {
		if c.was.Known && c.is.Known && c.was.Metric == c.is.Metric && c.is.V < c.was.V {
			return c.is.Metric + " went back"
		}
	}
	return ""
}
