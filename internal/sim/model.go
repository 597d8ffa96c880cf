package sim

import "time"

// Profile is an engine's time model: what one scheduler step costs, and what
// bounds it. The cost is linear in the prefill tokens, with a quadratic term
// for attention, plus what decoding reads of the KV cache.
type Profile struct {
	Base         time.Duration // every step
	PrefillToken time.Duration // per token of prefill
	PrefillPair  float64       // ns per (new token, earlier token) pair
	DecodeToken  float64       // ns per token of context of each decoding sequence
	Sequence     time.Duration // per running sequence
	Budget       int           // tokens per step
	MaxRunning   int           // sequences in a step
}

// H100x2 is Qwen3-32B on two H100, fitted so that one chunk of 8,192 tokens
// takes 0.40 s.
var H100x2 = Profile{
	Base:         15 * time.Millisecond,
	PrefillToken: 36 * time.Microsecond,
	PrefillPair:  2.6,
	DecodeToken:  56,
	Sequence:     20 * time.Microsecond,
	Budget:       8192,
	MaxRunning:   256,
}

// stepTime adds up one step. prefillPairs is the sum of chunk·(computed +
// chunk/2) over its prefills, context the sum of the decoding sequences' tokens.
func (p Profile) stepTime(prefill int, prefillPairs float64, context, sequences int) time.Duration {
	return p.Base +
		time.Duration(prefill)*p.PrefillToken +
		time.Duration(p.PrefillPair*prefillPairs+p.DecodeToken*float64(context)) +
		time.Duration(sequences)*p.Sequence
}

// PrefillRate is the tokens per second of a full prefill step, for a picker
// that wants to be told.
func (p Profile) PrefillRate() float64 {
	n := float64(p.Budget)
	return n / p.stepTime(p.Budget, n*n/2, 0, 1).Seconds()
}
