// Package telemetry turns an engine's metrics page into one Sample and keeps the
// latest of every pod. Unknown is never zero and never idle.
package telemetry

import (
	"math"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// Value is a number that may be unknown, with the metric it came from.
type Value struct {
	V      float64
	Known  bool
	Metric string // name on the page, "" when unknown
	// At is the scrape (ns) the number comes from when that is older than the
	// Sample it stands in: the page lacked the metric since. 0 = the Sample's.
	At int64
}

// Count is the number as an int, at most the largest of 32 bits: a page may say
// anything, and an int made of 1e20 is negative.
func (v Value) Count() int { return int(min(v.V, math.MaxInt32)) }

// LoRA is what the page says about adapters that are active now. Active is not
// resident: an idle loaded adapter is absent.
type LoRA struct {
	Known   bool     // the page has the list of names at all
	Max     int      // adapters that fit at once, 0 = not told
	Running []string // sorted
	Waiting []string // sorted
	// Seen were active on earlier pages of this process, the latest first. Carry
	// sets it.
	Seen []SeenAdapter
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
	Since        int64 // ns: the first page of this process, 0 = this one. Carry sets it
	Clamped      int   // values on this page above their upper bound, cut to it
	// Hardware health, from the device exporter where there is one.
	Device Device

	// lookups are Triton's response-cache counters, kept for the difference to
	// the next scrape.
	lookups lookups
}

// Signal is one number of a Sample, with its name and the time (ns) of the page
// it was read from.
type Signal struct {
	Name  string
	Value Value
	At    int64
}

// Signals lists the numbers of a Sample under stable names, unknown ones too.
func (s *Sample) Signals() []Signal {
	list := []Signal{
		{"waiting", s.Waiting, s.At}, {"running", s.Running, s.At}, {"kv_usage", s.KVUsage, s.At},
		{"kv_block_size", s.KVBlockSize, s.At}, {"kv_blocks", s.KVBlocks, s.At},
		{"cache_queried", s.CacheQueried, s.At}, {"cache_hit", s.CacheHit, s.At}, {"preempted", s.Preempted, s.At},
		{"lora_slots_used", s.LoRA.SlotsUsed, s.At}, {"lora_slots_total", s.LoRA.SlotsTotal, s.At},
		{"process_start", s.ProcessStart, s.At},
		{"device_utilisation", s.Device.Utilisation, s.Device.At}, {"device_temp", s.Device.Temp, s.Device.At},
		{"device_mem_temp", s.Device.MemTemp, s.Device.At}, {"device_slow_down", s.Device.SlowDown, s.Device.At},
		{"device_power", s.Device.Power, s.Device.At}, {"device_envelope", s.Device.Envelope, s.Device.At},
	}
	for i := range list {
		if at := list[i].Value.At; at != 0 { // carried over from an earlier page
			list[i].At = at
		}
	}
	return list
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
	s.LoRA.Seen = prev.seen()
	if s.Since = prev.Since; s.Since == 0 {
		s.Since = prev.At
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
