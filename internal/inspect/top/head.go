package top

import (
	"fmt"
	"math"
	"slices"

	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// piece is a part of a line, with how well the line can do without it: 0 stays.
type piece struct {
	cell
	spare int
}

func wide(pieces []piece) int {
	var c cell
	for _, p := range pieces {
		c = joined(c, p.cell)
	}
	return c.width()
}

// fitted is a line of those pieces that there is room for.
func fitted(w int, pieces ...piece) string {
	for wide(pieces) > w {
		most := 0
		for i := range pieces {
			if pieces[i].spare > pieces[most].spare {
				most = i
			}
		}
		if pieces[most].spare == 0 {
			break // it is cut
		}
		pieces[most] = piece{}
	}
	var cells []cell
	for _, p := range pieces {
		cells = append(cells, p.cell)
	}
	return line(w, cells...)
}

// head is the state of the fleet.
func (m *model) head(d *drawing) []string {
	lines := []string{m.title()}
	if m.sheet == nil {
		return lines
	}
	lines = append(lines, m.traffic(d), m.hits())
	if m.height >= 16 {
		lines = append(lines, m.index())
	}
	return lines
}

func (m *model) title() string {
	name := text(bold, "eppctl top")
	if m.sheet == nil {
		return line(m.width, name, m.mode(), plain(m.addr))
	}
	return fitted(m.width, piece{name, 0}, piece{m.mode(), 0}, piece{m.counts(), 0}, piece{plain(m.addr), 1})
}

// counts is how many pods are in which state.
func (m *model) counts() cell {
	c := plain(out.Plural(m.sheet.Totals.Pods, "pod") + ":")
	for i, s := range states {
		if n := m.sheet.states[s.word]; n > 0 {
			l := s.look
			if i == len(states)-1 {
				l = none
			}
			c += text(l, fmt.Sprintf(" %d %s", n, s.word))
		}
	}
	if m.sheet.Truncated {
		c += text(warn, fmt.Sprintf(" (the first %d)", len(m.sheet.pods)))
	}
	return c
}

// mode says how old what is shown is. A frozen picture that looks alive would be
// the worst of all failures.
func (m *model) mode() cell {
	switch {
	case m.sheet == nil:
		return text(warn, "no data yet")
	case m.file:
		return m.past()
	case m.paused:
		was := m.history.at(m.shown).got
		return text(reverse, fmt.Sprintf(" PAUSED %s (%s ago) ", clock(m.sheet.At, m.zone), long(m.now().Sub(was))))
	case m.disconnected():
		return text(bad, "LOST "+long(m.since()))
	}
	return text(good, "LIVE "+clock(m.sheet.At, m.zone)+"  "+m.interval.String())
}

// traffic is what comes in, and how it spreads.
func (m *model) traffic(d *drawing) string {
	s := m.sheet
	switch s.Source {
	case "engines":
		return line(m.width, head("REQUESTS"), text(dim, "not known: no serve is asked, these are the engines themselves"))
	case "recording":
		return line(m.width, head("REQUESTS"), text(dim, "not known: a recording holds what engines said, and no picks"))
	}
	parts := []piece{{head("REQUESTS"), 0}, {plain(s.requests.String() + "/s"), 0}, {d.spark(s.recent, 0, 12, cool), 5}}
	if n := m.openBreakers(); n > 0 {
		parts = append(parts, piece{text(bad, fmt.Sprintf("%d open", n)), 0})
	}
	if s.refused.ok && s.refused.v > 0 {
		parts = append(parts, piece{text(bad, "refused "+s.refused.String()+"/s"), 0})
	}
	if s.imbalance.ok {
		l := none
		if s.imbalance.v >= herd {
			l = warn
		}
		parts = append(parts, piece{text(l, fmt.Sprintf("imbalance %.1f%s", s.imbalance.v, m.glyphs.times)), 1})
	}
	parts = append(parts, piece{plain("in flight " + whole(s.Totals.InFlight)), 3}, piece{plain("before first token " + whole(s.Totals.Waiting)), 2})
	if half, most, ok := took(s.picks); ok {
		parts = append(parts, piece{plain(fmt.Sprintf("decided in %s us (p99 %s)", amount(half), amount(most))), 6})
	}
	return fitted(m.width, parts...)
}

// took is how many microseconds half of the recent decisions took at most, and 99 of
// 100 of them.
func took(picks []*view.RecentPick) (half, most float64, ok bool) {
	if len(picks) == 0 {
		return 0, 0, false
	}
	us := make([]float64, len(picks))
	for i, p := range picks {
		us[i] = p.TookUs
	}
	slices.Sort(us)
	at := func(q float64) float64 { return us[int(math.Ceil(q*float64(len(us))))-1] }
	return at(0.5), at(0.99), true
}

// herd is the imbalance from which on one pod gets twice what it would of an even
// spread.
const herd = 2

func (m *model) openBreakers() (n int) {
	for _, r := range m.sheet.pods {
		if r.Breaker.Open {
			n++
		}
	}
	return n
}

// hits is the funnel of prompt tokens: what was asked for, what the best pod held,
// what the picked one held, what engines say they did not compute again.
func (m *model) hits() string {
	f, arrow := m.sheet.funnel, " → "
	if !placing(m.sheet.Snapshot) {
		return line(m.width, head("HITS"), text(dim, "not known"), plain("engines report "+percent(f.engine.v, f.engine.ok)+"%"))
	}
	if f.queried <= 0 {
		return line(m.width, head("HITS"), text(dim, "no prompt tokens "+f.window()))
	}
	of := func(v float64) string { return percent(v/f.queried, true) + "%" }
	engine := unknown
	if f.engine.ok {
		engine = percent(f.engine.v, true) + "%"
	}
	funnel := func(tokens, best, engines string) cell {
		return plain(amount(f.queried) + tokens + arrow + best + of(f.best) + arrow + "selected " + of(f.selected) + arrow + engines + engine)
	}
	since := cell("")
	if f.over == 0 {
		since = text(dim, "since the start")
	}
	long := []piece{{head("HITS"), 0}, {funnel(" tokens queried", "best available ", "engines report "), 0}, {m.sheet.tokenIDs(false), 0}, {since, 0}}
	if wide(long) <= m.width {
		return fitted(m.width, long...)
	}
	return fitted(m.width, piece{head("HITS"), 0}, piece{funnel(" tokens", "best ", "engines "), 0}, piece{m.sheet.tokenIDs(true), 1}, piece{since, 2})
}

// window says of which time a funnel is. As long as there are frames of less than a
// minute, nothing is known of the rest of it.
func (f *funnel) window() string {
	switch {
	case f.over == 0:
		return "since the start"
	case f.over < shareWindow:
		return "in the " + long(f.over) + " that top has seen"
	}
	return "in the last minute"
}

func (m *model) index() string {
	s := m.sheet
	share := part(float64(s.Index.Blocks), float64(s.Index.MaxBlocks))
	room := fmt.Sprintf("%s/%s blocks (%s%%)", whole(s.Index.Blocks), whole(s.Index.MaxBlocks), percent(share.v, share.ok))
	bytes := size(s.Index.Bytes)
	if s.Index.Bytes == 0 && s.Index.Blocks > 0 {
		bytes = unknown + " B" // they are counted by a sweep, and there was none yet
	}
	if s.Index.MaxBytes != nil {
		bytes += "/" + size(*s.Index.MaxBytes)
	}
	l := none
	if share.v >= 0.9 {
		l = warn
	}
	parts := []piece{{head("INDEX"), 0}, {text(l, room), 0}, {plain(bytes), 2}, {head("EVENTS") + "  " + plain(s.events.String()+"/s"), 1}}
	if s.behind > 0 {
		parts = append(parts, piece{text(warn, fmt.Sprintf("%d not live", s.behind)), 0})
	}
	if s.lost > 0 {
		parts = append(parts, piece{text(warn, "lost "+count(s.lost)), 0})
	}
	if s.evicted.ok && s.evicted.v > 0 {
		parts = append(parts, piece{text(warn, "evicting "+s.evicted.String()+"/s"), 0})
	}
	return fitted(m.width, parts...)
}

func head(s string) cell { return text(bold, s) }
