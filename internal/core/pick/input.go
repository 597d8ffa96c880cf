package pick

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/spelling"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// Input is one number of a pod as something is supposed of it.
type Input struct {
	Pod, Field string
	Value      float64
}

// InputError is about a text that is no input, or a value that it cannot have.
type InputError struct{ Text, Why string }

func (e *InputError) Error() string { return fmt.Sprintf("%q: %s", e.Text, e.Why) }

// moment is the place in a decision at which an input takes another value.
type moment uint8

const (
	supposeRead  moment = iota // what was read of the pod
	supposeSpeed               // once the pod's slow-down is known
	supposeQueue               // once its queue is
)

// field is one input: what it is called, where a row has it, and how it is set.
type field struct {
	name, unit string
	about      string
	whole      bool
	least      float64
	most       func(c *Card) float64
	now        func(r *Row) (v float64, known bool)
	at         moment
	set        func(was *Card, b *basis, r *Row, v float64)
}

const (
	mostRequests = maxWaiting
	mostTokens   = 1e12
)

func upTo(v float64) func(*Card) float64 { return func(*Card) float64 { return v } }

// inputs is the one list of what can be supposed of a pod.
var inputs = []field{
	{
		name: "queue", unit: "requests", about: "before their first token, ours and others'", whole: true, most: upTo(mostRequests),
		now: func(r *Row) (float64, bool) { return float64(r.Depth), true },
		at:  supposeQueue, set: setQueue,
	},
	{
		name: "cached", unit: "tokens", about: "of the prompt that the engine has, in whole blocks", whole: true,
		most: func(c *Card) float64 { return float64(c.Tokens) },
		now:  func(r *Row) (float64, bool) { return float64(r.Cached), true },
		set:  setCached,
	},
	{
		name: "in_flight", unit: "requests", about: "of ours that have not ended", whole: true, most: upTo(mostRequests),
		now: func(r *Row) (float64, bool) { return float64(r.Load.InFlight), true },
		set: func(_ *Card, _ *basis, r *Row, v float64) { r.Load.InFlight = int(v) },
	},
	{
		name: "held", unit: "tokens", about: "of prompts in flight, in its KV pool", whole: true, most: upTo(mostTokens),
		now: func(r *Row) (float64, bool) { return float64(r.Load.Held), true },
		set: func(_ *Card, _ *basis, r *Row, v float64) { r.Load.Held = int64(v) },
	},
	{
		name: "kv_usage", unit: "share", about: "of its KV blocks, as its page shows it; it counts where others may be there", most: upTo(1),
		now: gaugeOf(func(s *telemetry.Sample) *telemetry.Value { return &s.KVUsage }),
		set: func(was *Card, b *basis, r *Row, v float64) {
			setGauge(was, b, r, v, func(s *telemetry.Sample) *telemetry.Value { s.KVEstimate = false; return &s.KVUsage })
		},
	},
	{
		name: "waiting", unit: "requests", about: "that wait, as its page shows them; they count where they are not ours", whole: true, most: upTo(mostRequests),
		now: gaugeOf(func(s *telemetry.Sample) *telemetry.Value { return &s.Waiting }),
		set: func(was *Card, b *basis, r *Row, v float64) {
			setGauge(was, b, r, v, func(s *telemetry.Sample) *telemetry.Value { return &s.Waiting })
		},
	},
	{
		name: "running", unit: "requests", about: "that run, as its page shows them; with waiting, they tell whether others are there", whole: true, most: upTo(mostRequests),
		now: gaugeOf(func(s *telemetry.Sample) *telemetry.Value { return &s.Running }),
		set: func(was *Card, b *basis, r *Row, v float64) {
			setGauge(was, b, r, v, func(s *telemetry.Sample) *telemetry.Value { return &s.Running })
		},
	},
	{
		name: "slow", unit: "times", about: "as long as the reference takes for a prefill", least: 1.0 / maxRated, most: upTo(maxRated),
		now: func(r *Row) (float64, bool) { return r.Slow, true },
		at:  supposeSpeed, set: func(_ *Card, _ *basis, r *Row, v float64) { r.Slow = v },
	},
}

// InputNames lists what can be supposed of a pod, the most telling first.
func InputNames() []string {
	names := make([]string, len(inputs))
	for i := range inputs {
		names[i] = inputs[i].name
	}
	return names
}

// InputAbout is one line on an input, for help.
func InputAbout(name string) string {
	if f := inputField(name); f != nil {
		return f.unit + " " + f.about
	}
	return ""
}

func inputField(name string) *field {
	for i := range inputs {
		if inputs[i].name == name {
			return &inputs[i]
		}
	}
	return nil
}

// ParseInput reads POD.FIELD=VALUE. Names of pods may have dots; in-flight is
// in_flight. Whether there is such a pod is Suppose's to say.
func ParseInput(text string) (Input, error) {
	eq := strings.LastIndexByte(text, '=')
	if eq < 0 {
		return Input{}, &InputError{text, "want POD.FIELD=VALUE, such as vllm-0.queue=12"}
	}
	dot := strings.LastIndexByte(text[:eq], '.')
	if dot <= 0 {
		return Input{}, &InputError{text, "want POD.FIELD=VALUE, such as vllm-0.queue=12"}
	}
	x := Input{Pod: text[:dot], Field: strings.ReplaceAll(text[dot+1:eq], "-", "_")}
	if inputField(x.Field) == nil {
		return Input{}, &InputError{text, fmt.Sprintf("no input is called %q; %s", text[dot+1:eq], spelling.Among(text[dot+1:eq], InputNames()))}
	}
	var err error
	if x.Value, err = strconv.ParseFloat(text[eq+1:], 64); err != nil || math.IsNaN(x.Value) || math.IsInf(x.Value, 0) {
		return Input{}, &InputError{text, fmt.Sprintf("found %q; expected a number", text[eq+1:])}
	}
	return x, nil
}

// String is the text that ParseInput reads.
func (x Input) String() string { return x.Pod + "." + x.Field + "=" + plain(x.Value) }

// plain writes a number without an exponent.
func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// check holds a value against the input's range.
func (x Input) check(c *Card) error {
	f := inputField(x.Field)
	switch {
	case f == nil:
		return &InputError{x.Field, "no input is called so; " + spelling.Among(x.Field, InputNames())}
	case f.whole && x.Value != math.Trunc(x.Value):
		return &InputError{x.String(), "want a whole number of " + f.unit}
	case !(x.Value >= f.least && x.Value <= f.most(c)):
		return &InputError{x.String(), fmt.Sprintf("want %s to %s %s", plain(f.least), plain(f.most(c)), f.unit)}
	}
	return nil
}

// apply sets the inputs of this row and this moment. b is the basis that is being
// observed for the new decision.
func (w *WhatIf) apply(was *Card, b *basis, r *Row, at moment) {
	for _, x := range w.Inputs {
		if f := inputField(x.Field); f.at == at && x.Pod == r.Pod.Spec.Name {
			f.set(was, b, r, x.Value)
		}
	}
}

// setQueue makes the queue as long as n requests of the kind that is there make it:
// as long as those take one by one, or where nothing is as the mean of all takes.
func setQueue(_ *Card, b *basis, r *Row, n float64) {
	each := b.mean
	if r.Depth > 0 && r.Queue > 0 {
		each = r.Queue / float64(r.Depth)
	}
	r.Queue, r.Depth = n*each, int(n)
	r.Load.Waiting, r.Load.Depth = r.Depth, r.Depth
	if !r.Waiting.Known { // or the longest of the others would be taken for it
		r.Waiting = &telemetry.Value{V: n, Known: true}
	}
}

// setCached cuts the match at its end, from the slowest tier on, where engines
// offload first, or prolongs it by blocks on the GPU.
func setCached(was *Card, _ *basis, r *Row, tokens float64) {
	if !was.Exact { // nothing can match: it is a guess then, and counts as one
		r.Near = min(int(tokens), was.Tokens-1)
		return
	}
	m := &r.Match
	if m.Size <= 0 {
		m.Size = int32(was.blockSize())
	}
	depth := int32(tokens) / m.Size
	if m.Rank < 0 && depth > 0 {
		m.Rank, m.Member = int32(max(r.Rank, 0)), r.Pod.Members[max(r.Rank, 0)]
	}
	if more := depth - m.Depth; more > 0 {
		m.Announced += more
		m.Fastest[event.TierGPU] += more
	}
	m.Depth = depth
	for i := range event.NumTiers {
		t := event.NumTiers - 1 - i
		cut := max(0, min(m.Announced-depth, m.Fastest[t]))
		m.Fastest[t] -= cut
		m.Announced -= cut
	}
}

// blockSize is that of the deepest match, for a pod that matches nothing yet.
func (c *Card) blockSize() int {
	if size := c.deepestSize(); size > 0 {
		return size
	}
	return defaultBlock
}

// setGauge lets the pod's page show another number. A pod without a page that counts
// gets a fresh one that shows nothing else.
func setGauge(was *Card, b *basis, r *Row, v float64, of func(*telemetry.Sample) *telemetry.Value) {
	s := telemetry.Sample{At: was.Now}
	if r.entry.State(was.Now, b.limits) != telemetry.Unknown {
		s = *r.entry.Sample
	}
	*of(&s) = telemetry.Value{V: v, Known: true}
	e := *r.entry
	e.Sample, e.Brief = &s, telemetry.BriefOf(&s)
	r.entry, r.Device = &e, &s.Device
}

func gaugeOf(of func(*telemetry.Sample) *telemetry.Value) func(*Row) (float64, bool) {
	return func(r *Row) (float64, bool) {
		if r.entry == nil || r.entry.Sample == nil || r.Telemetry == telemetry.Unknown {
			return 0, false
		}
		v := of(r.entry.Sample)
		return v.V, v.Known
	}
}
