package recorded

import (
	"slices"

	"github.com/eppctl/eppctl/internal/inspect/replay/engine"
)

// Observed is what the recorded requests met, beside which a simulation of the same
// is to be read. Times are seconds.
type Observed struct {
	Requests int     `json:"requests"` // counted: the first tenth is not, as in a run
	Streamed int     `json:"streamed"` // of them, with a first byte that was seen
	Mean     float64 `json:"ttft_mean_s"`
	P50      float64 `json:"ttft_p50_s"`
	P90      float64 `json:"ttft_p90_s"`
	P99      float64 `json:"ttft_p99_s"`
	Under    float64 `json:"under_2s"`
	Hit      float64 `json:"hit"` // cached share of prompt tokens
	// Told is the share of the requests of which the engine itself told the hit.
	Told    float64 `json:"hit_told"`
	MaxMean float64 `json:"prefill_max_over_mean"`
}

// warmup is the share of requests that runs do not count.
const warmup = 0.1

// Observed counts.
func (r *Recording) Observed() Observed {
	var o Observed
	var times []float64
	uncached := map[string]float64{}
	prompt, cached, told, sum := 0.0, 0.0, 0, 0.0
	for i := range r.Requests {
		x := &r.Requests[i]
		uncached[x.Pod] += float64(x.Prompt - x.Cached())
		sum += float64(x.Prompt - x.Cached())
		if float64(i) < warmup*float64(len(r.Requests)) && len(r.Requests) >= 10 {
			continue
		}
		o.Requests++
		prompt += float64(x.Prompt)
		cached += float64(x.Cached())
		if x.outcome != nil && x.outcome.Cached != nil {
			told++
		}
		if t, seen := x.First(); seen {
			times = append(times, t)
		}
	}
	if prompt > 0 {
		o.Hit, o.Told = cached/prompt, float64(told)/float64(o.Requests)
	}
	for _, v := range uncached {
		o.MaxMean = max(o.MaxMean, v*float64(r.Pods)/max(sum, 1))
	}
	o.times(times)
	return o
}

func (o *Observed) times(list []float64) {
	if o.Streamed = len(list); len(list) == 0 {
		return
	}
	slices.Sort(list)
	under := 0
	for _, t := range list {
		o.Mean += t / float64(len(list))
		if t < 2 {
			under++
		}
	}
	at := func(p float64) float64 { return list[int(p*float64(len(list)-1))] }
	o.P50, o.P90, o.P99, o.Under = at(0.5), at(0.9), at(0.99), float64(under)/float64(len(list))
}

// A pace is fitted to at least so many prompts of at least so many tokens to
// compute: below that the fixed costs of a step, and of the way there, outweigh it.
const (
	paceSamples = 20
	paceTokens  = 512
)

// Pace is how much longer the recorded engines took than a profile's for prompts
// that met nothing before them: the median, 1 and 0 samples when there are too few.
func (r *Recording) Pace(p *engine.Profile) (factor float64, samples int) {
	var list []float64
	for i := range r.Requests {
		x := &r.Requests[i]
		u := x.Prompt - x.Cached()
		t, seen := x.First()
		if !seen || !x.Idle || !x.Exact || u < paceTokens || t <= 0 {
			continue
		}
		list = append(list, t/(p.Base+p.Prefill(u, x.Cached())))
	}
	if len(list) < paceSamples {
		return 1, 0
	}
	slices.Sort(list)
	return min(max(list[len(list)/2], minPace), maxPace), len(list)
}

// What lies beyond is no engine of that profile: another profile is nearer.
const minPace, maxPace = 0.01, 100
