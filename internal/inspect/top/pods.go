package top

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// Widths of the bars.
const (
	barWidth  = 6
	tierWidth = 8

	courseWidth = 12
)

// podColumns is the table of pods. What is most asked for during an incident is
// needed first: who is broken, who queues, who is full, how old all this is.
var podColumns = []column[*podRow]{
	{name: "POD", need: 0, cell: podName, less: byName},
	{name: "STATE", width: 5, need: 1, cell: func(_ *drawing, r *podRow) cell { return stateCell(r) }, less: func(a, b *podRow) int {
		return cmp.Compare(stateRank(a.word()), stateRank(b.word()))
	}},
	{name: "REQ/s", width: 5, at: lipgloss.Right, need: 5, cell: func(_ *drawing, r *podRow) cell { return known(r.picks.String()) }, less: func(a, b *podRow) int {
		return cmp.Compare(b.picks.v, a.picks.v)
	}},
	{name: "SHARE", width: 5, at: lipgloss.Right, need: 8, cell: func(_ *drawing, r *podRow) cell { return known(percent(r.share.v, r.share.ok)) }, less: func(a, b *podRow) int {
		return cmp.Compare(b.share.v, a.share.v)
	}},
	{name: "WAIT", width: 5, at: lipgloss.Right, need: 2, cell: func(_ *drawing, r *podRow) cell { return known(number(r.Telemetry.Waiting)) }, less: byNumber(func(r *podRow) *float64 { return r.Telemetry.Waiting })},
	{name: "RUN", width: 4, at: lipgloss.Right, need: 7, cell: func(_ *drawing, r *podRow) cell { return known(number(r.Telemetry.Running)) }, less: byNumber(func(r *podRow) *float64 { return r.Telemetry.Running })},
	{name: "FLY", width: 4, at: lipgloss.Right, need: 9, cell: func(_ *drawing, r *podRow) cell { return known(r.placed(whole(r.Load.InFlight))) }, less: func(a, b *podRow) int {
		return cmp.Compare(b.Load.InFlight, a.Load.InFlight)
	}},
	{name: "QUEUE", width: 6, at: lipgloss.Right, need: 16, cell: func(_ *drawing, r *podRow) cell { return known(r.placed(long(millis(r.Load.QueueMs)))) }, less: func(a, b *podRow) int {
		return cmp.Compare(b.Load.QueueMs, a.Load.QueueMs)
	}},
	{name: "WAITED", width: courseWidth, bar: true, need: 16, cell: func(d *drawing, r *podRow) cell {
		return d.spark(d.waited(r.Name), d.sheet.longest, courseWidth, cool)
	}},
	{name: "KV%", width: 4, at: lipgloss.Right, need: 4, cell: kvCell, less: byNumber(func(r *podRow) *float64 { return r.Telemetry.KVUsage })},
	{name: "", width: barWidth, bar: true, need: 20, cell: kvBar},
	{name: "HIT%", width: 4, at: lipgloss.Right, need: 6, cell: func(_ *drawing, r *podRow) cell { return known(percent(r.hit.v, r.hit.ok)) }, less: func(a, b *podRow) int {
		return cmp.Compare(b.hit.v, a.hit.v)
	}},
	{name: "DEPTH", width: barWidth, bar: true, need: 11, cell: func(d *drawing, r *podRow) cell { return d.depth(r.depth, barWidth) }, less: byDepth},
	{name: "P50/95", width: 7, at: lipgloss.Right, need: 15, cell: func(_ *drawing, r *podRow) cell { return known(r.depth.String()) }, less: byDepth},
	{name: "TIERS", width: tierWidth, bar: true, need: 10, cell: func(d *drawing, r *podRow) cell { return d.stack(r.blocks, d.sheet.fullest, tierWidth) }, less: func(a, b *podRow) int {
		return cmp.Compare(held(b), held(a))
	}},
	{name: "BLOCKS", width: 6, at: lipgloss.Right, need: 14, cell: func(_ *drawing, r *podRow) cell { return plain(whole(held(r))) }, less: func(a, b *podRow) int {
		return cmp.Compare(held(b), held(a))
	}},
	{name: "BREAKER", width: 12, need: 12, cell: func(d *drawing, r *podRow) cell { return breakerCell(d, r) }},
	{name: "SYNC", width: 10, need: 13, cell: func(_ *drawing, r *podRow) cell { return syncCell(r.sync) }, less: func(a, b *podRow) int {
		return cmp.Compare(syncRank(a.sync), syncRank(b.sync))
	}},
	{name: "EVENT", width: 5, at: lipgloss.Right, need: 15, cell: func(d *drawing, r *podRow) cell { return d.ageCell(r.eventMs, false) }},
	{name: "EV/s", width: 5, at: lipgloss.Right, need: 17, cell: func(_ *drawing, r *podRow) cell { return known(r.events.String()) }, less: func(a, b *podRow) int {
		return cmp.Compare(b.events.v, a.events.v)
	}},
	{name: "HARDWARE", width: 10, need: 18, cell: func(_ *drawing, r *podRow) cell { return deviceCell(r.Telemetry.Device) }},
	{name: "ENGINE", width: 8, need: 19, cell: func(_ *drawing, r *podRow) cell { return plain(r.Engine) }},
	{name: "MODEL", width: 24, need: 21, cell: func(_ *drawing, r *podRow) cell { return plain(r.Model) }},
	{name: "ADDRESS", width: 21, need: 22, cell: func(_ *drawing, r *podRow) cell { return plain(r.Addr) }},
	{name: "AGE", width: 5, at: lipgloss.Right, need: 3, cell: func(d *drawing, r *podRow) cell { return d.ageCell(r.Telemetry.AgeMs, r.Telemetry.State != "fresh") }},
}

func byDepth(a, b *podRow) int {
	return cmp.Or(cmp.Compare(b.depth.half, a.depth.half), cmp.Compare(b.depth.most, a.depth.most))
}

func byName(a, b *podRow) int { return strings.Compare(a.Name, b.Name) }

// byNumber sorts from the highest; unknown ones come last.
func byNumber(of func(*podRow) *float64) func(a, b *podRow) int {
	value := func(r *podRow) float64 {
		if v := of(r); v != nil {
			return *v
		}
		return -1
	}
	return func(a, b *podRow) int { return cmp.Compare(value(b), value(a)) }
}

func held(r *podRow) int { return r.blocks[0] + r.blocks[1] + r.blocks[2] + r.blocks[3] }

// known dims what is not.
func known(s string) cell {
	if s == unknown {
		return text(dim, s)
	}
	return plain(s)
}

// states are the words for a pod, the worst first, with their looks.
var states = []struct {
	word string
	look look
}{{"down", bad}, {"stale", warn}, {"open", bad}, {"blind", warn}, {"slow", warn}, {"ok", good}}

// word is the pod's state. One with an event stream in which nothing is heard is blind,
// if it is no worse: on a screen without room for SYNC it would pass for well.
func (r *podRow) word() string {
	const blind = "blind"
	if stateRank(r.State) > stateRank(blind) && (r.sync == view.Down.String() || r.sync == view.Stale.String()) {
		return blind
	}
	return r.State
}

func stateRank(word string) int {
	for i, s := range states {
		if s.word == word {
			return i
		}
	}
	return len(states)
}

// stateCell has the word in capitals unless all is well, so that it stands out
// without colour too.
func stateCell(r *podRow) cell {
	for _, s := range states {
		if s.word != r.word() {
			continue
		}
		switch {
		case s.word != "ok":
			return text(s.look, strings.ToUpper(s.word))
		case r.Draining:
			return text(warn, "drain")
		}
		return text(s.look, s.word)
	}
	return plain(r.State)
}

func kvCell(_ *drawing, r *podRow) cell {
	if r.Telemetry.KVUsage == nil {
		return known(unknown)
	}
	v := *r.Telemetry.KVUsage
	if l := load(v); l != cool {
		return text(l, percent(v, true))
	}
	return plain(percent(v, true))
}

func kvBar(d *drawing, r *podRow) cell {
	if r.Telemetry.KVUsage == nil {
		return ""
	}
	return d.bar(*r.Telemetry.KVUsage, barWidth, load(*r.Telemetry.KVUsage))
}

// breakerCell says what keeps the pod out and when it is tried again.
func breakerCell(d *drawing, r *podRow) cell {
	b := &r.Breaker
	switch {
	case b.Open && b.ProbeInMs != nil && d.left(*b.ProbeInMs) > 0:
		return text(bad, "probe "+long(d.left(*b.ProbeInMs)))
	case b.Open && b.ProbeInMs != nil:
		return text(bad, "probing")
	case b.Open:
		return text(bad, fmt.Sprintf("queue %s/%d", whole(b.Waiting), b.Limit))
	case b.Errors > 0:
		return text(warn, out.Plural(b.Errors, "error"))
	}
	return text(dim, fmt.Sprintf("%s/%d", r.placed(whole(b.Waiting)), b.Limit))
}

// left is what is left of a time that was so long when the frame came.
func (d *drawing) left(ms float64) time.Duration { return millis(ms - float64(d.later)) }

func syncRank(label string) int {
	for i, word := range badness {
		if strings.HasPrefix(label, word) {
			return i
		}
	}
	return len(badness)
}

func syncCell(label string) cell {
	switch label {
	case view.Live.String():
		return plain(label)
	case view.NoEvents.String(), "-":
		return text(dim, label)
	case view.Down.String():
		return text(bad, label)
	}
	return text(warn, label)
}

func deviceCell(v *view.Device) cell {
	switch {
	case v == nil:
		return known(unknown)
	case v.Fatal:
		return text(bad, "FATAL")
	case v.Critical:
		return text(bad, "critical")
	case v.Throttled:
		return text(warn, "throttled")
	}
	return plain("ok")
}

// ageCell is how old something is by now; ! marks what is too old.
func (d *drawing) ageCell(ms *int64, old bool) cell {
	if ms == nil {
		return known(unknown)
	}
	s := age(time.Duration(*ms+d.later) * time.Millisecond)
	if old {
		return text(warn, s+"!")
	}
	return plain(s)
}
