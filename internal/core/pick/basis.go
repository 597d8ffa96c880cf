package pick

import (
	"math"
	"time"

	"github.com/eppctl/eppctl/internal/core/telemetry"
	"github.com/eppctl/eppctl/internal/core/view"
)

// basis is what all candidates of one decision share. One reference calibration
// for the whole set keeps the differences between pods in real seconds: a slower
// pod shows in its hardware term, not in a reference of its own.
type basis struct {
	policy *Policy
	cal    Calibration
	now    int64
	prompt int     // L, tokens
	exact  bool    // the prompt's tokens are known
	cold   float64 // T(L, 0): the same for all pods
	means  view.Means
	limits telemetry.Limits
	// charge is the breaker's seconds per unit of r^d - 1.
	charge float64

	// What stands in for values that a pod does not tell.
	usage    float64
	usageHow Source
	waiting  float64 // 0 = no fresh page tells
	pool     float64 // tokens
	poolHow  Source
}

func newBasis(v *view.View, q *Query, pol *Policy) basis {
	b := basis{
		policy: pol,
		cal:    pol.calibration(q.Base),
		now:    q.Now,
		prompt: max(1, q.PromptTokens),
		exact:  len(q.Prompt.Tokens) > 0,
		means:  v.Load.Means(),
		limits: pol.limits(),
		usage:  unknownUsage, usageHow: FromDefault,
		charge: pol.Breaker.Weight / (power(pol.Breaker.Ratio, pol.Breaker.Depth) - 1),
	}
	if b.exact {
		b.prompt = len(q.Prompt.Tokens)
	}
	b.cold = b.cal.prefill(float64(b.prompt), 0)
	return b
}

// computed is T(u, H) in seconds for a row whose Cached is set.
func (b *basis) computed(cached int) float64 {
	return b.cal.prefill(float64(b.prompt-cached), float64(cached))
}

// power is x^n for small n, several times faster than math.Pow and exact for
// powers of two.
func power(x float64, n int) float64 {
	y := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			y *= x
		}
		x *= x
	}
	return y
}

// nanos turns seconds into nanoseconds, whatever they are.
func nanos(s float64) int64 {
	return int64(math.Min(math.Max(s, 0), maxSeconds) * 1e9)
}

// seconds is time.Duration.Seconds without its integer division.
func seconds(d time.Duration) float64 { return float64(d) / 1e9 }

func duration(s float64) time.Duration { return time.Duration(nanos(s)) }
