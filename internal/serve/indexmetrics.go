package serve

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
)

var (
	descIndex      = desc("index_blocks", "Distinct blocks in the index.")
	descBytes      = desc("index_bytes", "Memory the index holds for them, about.")
	descEvicted    = desc("index_evicted_blocks_total", "Blocks dropped for the memory cap.")
	descShard      = desc("index_shard_blocks", "Distinct blocks below each writer lock that was ever in use.", "shard")
	descLockWaits  = desc("index_lock_waits_total", "Times a writer found the lock of a shard taken.", "shard")
	descLockWaited = desc("index_lock_wait_seconds_total", "Time writers waited for it.", "shard")

	descBlocks      = desc("pod_blocks", "Distinct blocks the index holds of the pod.", "pod", "rank", "tier")
	descApproximate = desc("pod_matches_approximate", "1 for a model with cache groups whose rule is not known: its matches are too long at times.", "pod", "rank")
	descBreaches    = desc("pod_block_copies_above_capacity_total", "Times an engine reported more copies of blocks than it has room for.", "pod", "rank")
)

func collectIndex(out chan<- prometheus.Metric, s *index.Stats) {
	gauge(out, descIndex, float64(s.Blocks))
	gauge(out, descBytes, float64(s.Bytes))
	count(out, descEvicted, s.Evicted)
	for i, blocks := range s.ShardBlocks {
		if blocks == 0 && s.ShardWaits[i] == 0 {
			continue
		}
		shard := strconv.Itoa(i)
		gauge(out, descShard, float64(blocks), shard)
		count(out, descLockWaits, s.ShardWaits[i], shard)
		out <- prometheus.MustNewConstMetric(descLockWaited, prometheus.CounterValue, s.ShardWaited[i].Seconds(), shard)
	}
}

func collectMember(out chan<- prometheus.Metric, s *index.MemberStats, pod, rank string) {
	for t := range event.NumTiers {
		gauge(out, descBlocks, float64(s.Blocks[t]), pod, rank, t.String())
	}
	gauge(out, descApproximate, truth(s.Approximate), pod, rank)
	count(out, descBreaches, s.Breaches, pod, rank)
}
