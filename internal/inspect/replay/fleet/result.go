package fleet

import (
	"math"
	"slices"
)

// Outcome is what became of one request. Times are seconds of virtual time.
type Outcome struct {
	Arrival, Placed, First, Done float64
	Pod                          int
	Cached                       int // prompt tokens found in the cache
	Sends                        int // above 1 where a pod died under it
}

// TTFT is the time to first token.
func (o *Outcome) TTFT() float64 { return o.First - o.Arrival }

// Result is a run in numbers. Times are seconds; the first tenth of the requests is
// not counted, while caches fill.
type Result struct {
	Policy   string  `json:"policy"`
	Requests int     `json:"requests"` // counted
	Mean     float64 `json:"ttft_mean_s"`
	P50      float64 `json:"ttft_p50_s"`
	P90      float64 `json:"ttft_p90_s"`
	P99      float64 `json:"ttft_p99_s"`
	Latency  float64 `json:"latency_mean_s"` // to the last token
	Hit      float64 `json:"hit"`            // cached share of prompt tokens
	Under    float64 `json:"under_2s"`       // share of requests with a TTFT below 2 s
	MaxMean  float64 `json:"prefill_max_over_mean"`
	CV       float64 `json:"prefill_cv"` // of prefill tokens over pods
	Busy     float64 `json:"busy"`
	Preempt  int     `json:"preemptions"`
	Resent   int     `json:"resent"`
	End      float64 `json:"end_s"`

	Outcomes []Outcome `json:"-"` // of all requests, in the workload's order
}

const warmup = 0.1 // share of requests not counted

func (r *run) result(policy string) *Result {
	x := &Result{Policy: policy, End: float64(r.now) / 1e9}
	var times []float64
	prompt, cached := 0.0, 0.0
	for i := range r.flights {
		f := &r.flights[i]
		x.Outcomes = append(x.Outcomes, f.Outcome)
		if f.Sends > 1 {
			x.Resent++
		}
		if float64(i) < warmup*float64(len(r.flights)) && len(r.flights) >= 10 {
			continue
		}
		times = append(times, f.TTFT())
		x.Latency += f.Done - f.Arrival
		prompt += float64(f.Prompt)
		cached += float64(f.Cached)
	}
	x.Requests = len(times)
	x.Latency /= float64(len(times))
	x.Hit = cached / prompt
	x.times(times)
	x.pods(r)
	return x
}

func (x *Result) times(list []float64) {
	under := 0
	for _, t := range list {
		x.Mean += t
		if t < 2 {
			under++
		}
	}
	x.Mean /= float64(len(list))
	x.Under = float64(under) / float64(len(list))
	slices.Sort(list)
	x.P50, x.P90, x.P99 = quantile(list, 0.5), quantile(list, 0.9), quantile(list, 0.99)
}

// quantile of a sorted list: element ⌊p(n-1)⌋.
func quantile(list []float64, p float64) float64 { return list[int(p*float64(len(list)-1))] }

func (x *Result) pods(r *run) {
	n := float64(len(r.pods))
	mean, most, squares := 0.0, 0.0, 0.0
	for _, s := range r.pods {
		mean += float64(s.engine.Computed) / n
		most = max(most, float64(s.engine.Computed))
		x.Busy += s.engine.Busy / n / x.End
		x.Preempt += s.engine.Preemptions
	}
	for _, s := range r.pods {
		d := float64(s.engine.Computed) - mean
		squares += d * d / n
	}
	x.MaxMean, x.CV = most/mean, math.Sqrt(squares)/mean
}
