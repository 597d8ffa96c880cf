package jinja2

import (
	"context"
	"strconv"
)

// Limits bound what a template may do in one render. Templates come from model
// repositories, so a hostile one must end as an error.
type Limits struct {
	// Output is the most bytes all text that is made may have together: what is
	// printed, once per macro it passes through, and what operators and filters
	// build. A render of a chat makes 2.2 to 4 times its text
	// (BenchmarkRender120kB).
	Output int
	// Steps is the most operations, loop runs and list items.
	Steps int
	// Depth is the most macros and recursive loops inside of each other.
	// Python ends at about 250 of them, by its own recursion limit.
	Depth int
}

// DefaultLimits leave room for a chat of 16 MB and for 600 times the steps of one
// of 120 kB in 41 messages, which takes 3 700 to 4 700 (BenchmarkRender120kB). The
// costliest of TestBombs uses them up in 1.4 s of one core.
var DefaultLimits = Limits{Output: 64 << 20, Steps: 3_000_000, Depth: 200}

// pollEvery is how many steps pass between two looks at the context: about
// 100 µs, and too few looks to be seen in a profile.
const pollEvery = 1024

// textPerStep is how many bytes of text that is only read, in a comparison or a
// search, take as long as a step.
const textPerStep = 64

// meter counts what a render uses.
type meter struct {
	ctx    context.Context
	limits Limits
	bytes  int
	steps  int
	poll   int
	depth  int
}

func (m *meter) reset(ctx context.Context, l Limits) { *m = meter{ctx: ctx, limits: l} }

// text charges n bytes of text.
func (m *meter) text(n int) error {
	if m.bytes += n; m.bytes > m.limits.Output || m.bytes < 0 {
		return &Exceeded{strconv.Itoa(m.limits.Output) + " bytes of text"}
	}
	return nil
}

// step charges n operations.
func (m *meter) step(n int) error {
	if m.steps += n; m.steps > m.limits.Steps || m.steps < 0 {
		return &Exceeded{strconv.Itoa(m.limits.Steps) + " steps"}
	}
	if m.poll += n; m.poll >= pollEvery {
		m.poll = 0
		return m.ctx.Err()
	}
	return nil
}

// room refuses n bytes that are to be allocated at once before they are.
func (m *meter) room(n int) error {
	if n < 0 || n > m.limits.Output-m.bytes {
		return &Exceeded{strconv.Itoa(m.limits.Output) + " bytes of text"}
	}
	return nil
}

func (m *meter) enter() error {
	if m.depth++; m.depth > m.limits.Depth {
		return &Exceeded{strconv.Itoa(m.limits.Depth) + " levels of macros"}
	}
	return nil
}
