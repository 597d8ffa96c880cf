package tap

import (
	"math"
	"math/bits"
)

// lags is a histogram of durations in fixed memory: eight buckets to each power of
// two of a microsecond, so quantiles are off by at most an eighth.
type lags struct {
	count   uint64
	buckets [64 * 8]uint64
	max     int64 // ns
}

func bucketOf(us uint64) int {
	if us < 8 {
		return int(us)
	}
	exp := bits.Len64(us) - 4 // the three bits behind the first say which of eight
	return (exp+1)*8 + int(us>>exp)&7
}

// upper is the largest value of a bucket, in microseconds.
func upper(bucket int) uint64 {
	if bucket < 16 {
		return uint64(bucket)
	}
	exp := bucket/8 - 1
	return (uint64(bucket%8)+9)<<exp - 1
}

// add takes a duration in ns, not below zero.
func (l *lags) add(ns int64) {
	l.count++
	l.max = max(l.max, ns)
	l.buckets[bucketOf(uint64(ns)/1000)]++
}

// quantile returns microseconds; 0 without samples.
func (l *lags) quantile(q float64) int64 {
	rank := uint64(math.Ceil(q * float64(l.count)))
	for i, n := range l.buckets {
		if rank <= n {
			return min(int64(upper(i)), l.max/1000)
		}
		rank -= n
	}
	return 0
}
