package sim

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// mean and quantile of durations; zero for none.
func mean(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	var sum time.Duration
	for _, x := range d {
		sum += x
	}
	return sum / time.Duration(len(d))
}

func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(d))
	return s[int(q*float64(len(s)-1))]
}

// histogramQuantile estimates a quantile from a Prometheus histogram on a page,
// linear inside the bucket, as PromQL does.
func histogramQuantile(page []byte, name string, q float64) (float64, error) {
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		return 0, fmt.Errorf("metrics page: %w", err)
	}
	f := families[name]
	if f == nil || len(f.Metric) == 0 || f.Metric[0].Histogram == nil {
		return 0, fmt.Errorf("metrics page: no histogram %s", name)
	}
	h := f.Metric[0].Histogram
	rank := q * float64(h.GetSampleCount())
	var lower, below float64
	for _, b := range h.Bucket {
		n := float64(b.GetCumulativeCount())
		if n >= rank && n > below {
			if math.IsInf(b.GetUpperBound(), 1) {
				return lower, nil
			}
			return lower + (b.GetUpperBound()-lower)*(rank-below)/(n-below), nil
		}
		lower, below = b.GetUpperBound(), n
	}
	return lower, nil
}
