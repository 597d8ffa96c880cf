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
	policy  *Policy
	cal     Calibration // as configured, times what was learned of the model
	prior   view.Prior
	rate    view.Rate // of the model, as learned
	scale   float64   // of the configured calibration: 1 = nothing was learned
	now     int64
	prompt  int  // L, tokens; of several prompts all
	exact   bool // the prompt's tokens are known
	several      // prompts
	able    int  // pods that nothing but their load leaves out
	proven  int  // of these, the ones that have answered a request
	// largest is the greatest block size in the index: only shorter prompts can be
	// shorter than a pod's block.
	largest int
	size    int32 // of the latest match's blocks, and most is what a match of such can save
	most    int
	cold    float64 // T(L, 0): the same for all pods
	means   view.Means
	mean    float64 // prefill seconds of a request of others
	stays   float64 // seconds of a request's residence, by means
	limits  telemetry.Limits
	charge  float64 // of the breaker
	holders holders

	// What stands in for values that a pod does not tell.
	usage    float64
	usageHow Source
	waiting  float64 // 0 = no fresh page tells
	envelope float64 // share of power or heat, 0 = nobody tells
	pool     float64 // tokens
	poolHow  Source
}

func newBasis(v *view.View, q *Query, pol *Policy) basis {
	b := basis{
		now:     q.Now,
		prompt:  max(1, q.PromptTokens),
		exact:   len(q.Prompt.Tokens) > 0,
		several: several{prompts: max(1, q.Prompts)},
		means:   v.Load.Means(q.Now),
	}
	if b.exact {
		b.prompt, b.several = count(q)
	}
	b.follow(pol)
	b.learn(v.Load, q.Base)
	b.settle()
	return b
}

// settle derives what stays the same for all pods.
func (b *basis) settle() {
	b.cold = b.computed(0)
	b.mean, b.stays = b.meanPrefill(), seconds(b.means.Residence)
}

// follow takes a policy; nothing was observed yet.
func (b *basis) follow(pol *Policy) {
	b.policy, b.limits = pol, pol.limits()
	b.usage, b.usageHow = unknownUsage, FromDefault
	b.charge = charge(&pol.Breaker)
}

// charge is the breaker's seconds per unit of r^d - 1.
func charge(b *Breaker) float64 { return b.Weight / (power(b.Ratio, b.Depth) - 1) }

// learn takes the model's calibration, and what was learned of it.
func (b *basis) learn(l *view.Ledger, model string) {
	b.calibrate(model)
	if b.policy.Learn.On {
		b.believe(l.Rate(b.prior))
	}
}

// calibrate takes the model's calibration as configured.
func (b *basis) calibrate(model string) {
	b.cal, b.scale = b.policy.calibration(model), 1
	b.prior = view.Prior{Model: model, TokensPerSecond: b.cal.TokensPerSecond}
}

// believe takes what was learned of the calibration as far as it is sure.
func (b *basis) believe(r view.Rate) {
	b.rate = r
	b.scale += r.Sure * (r.Factor - 1)
	b.cal.scale(b.scale)
}

// PrefillRate is a model's rate in tokens per second as decisions use it now, and
// how sure the learned part of it is, 0 to 1.
func (p *Policy) PrefillRate(l *view.Ledger, model string) (tokensPerSecond, sure float64) {
	b := basis{policy: p}
	b.learn(l, model)
	return b.cal.TokensPerSecond, b.rate.Sure
}

// computed is T(u, H) in seconds for a row whose Cached is set.
func (b *basis) computed(cached int) float64 {
	u, h := float64(b.prompt-cached), float64(cached)
	if b.prompts > 1 {
		return b.computedOf(u, h)
	}
	return b.cal.prefill(u, h)
}

// power is x^n for small n, several times faster than math.Pow and exact for
// powers of two, which are an exponent alone.
func power(x float64, n int) float64 {
	if x == 2 && n < 1024 {
		return math.Float64frombits(uint64(1023+n) << 52)
	}
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
