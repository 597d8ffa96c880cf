package top

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// The least screen, and the one from which on rules part it.
const (
	minWidth, minHeight = 60, 12
	roomy               = 20
)

// View draws the screen.
func (m *model) View() tea.View {
	if m.drawn == "" {
		m.drawn, m.drawnAt = strings.Join(m.screen(), "\n"), m.now()
	}
	v := tea.NewView(m.drawn)
	v.AltScreen, v.DisableBracketedPasteMode = true, true
	return v
}

// screen is the lines of the screen, none wider than it and as many as it has.
func (m *model) screen() []string {
	w, h := m.width, m.height
	switch {
	case w <= 0 || h <= 0:
		return nil // the size comes first of all
	case w < minWidth || h < minHeight:
		lines := out.Wrap(fmt.Sprintf("terminal too small: %dx%d, need %dx%d", w, h, minWidth, minHeight), w)
		return lines[:min(len(lines), h)]
	}
	d := m.drawing()
	head := m.head(d)
	foot := m.foot(d)
	if h >= roomy {
		rule := string(text(dim, strings.Repeat(m.glyphs.rule, w)))
		head, foot = append(head, rule), append([]string{rule}, foot...)
	}
	body := m.body(d, h-len(head)-len(foot))
	lines := slices.Concat(head, body, foot)
	if m.glyphs == &asciiGlyphs {
		for i := range lines {
			lines[i] = asciiOnly(lines[i])
		}
	}
	return lines
}

func (m *model) drawing() *drawing {
	d := &drawing{glyphs: m.glyphs, sheet: m.sheet, zone: m.zone}
	d.waited = func(pod string) []float64 { return m.history.course(m.shown, courseWidth, pod, queue) }
	if m.sheet != nil && !m.paused {
		d.later = max(m.now().Sub(m.sheet.got), 0).Milliseconds()
	}
	return d
}

// body is the middle of the screen: exactly n lines.
func (m *model) body(d *drawing, n int) (lines []string) {
	switch {
	case m.help:
		lines = m.scrolled(m.helpText(), n)
	case m.card != nil:
		lines = m.scrolled(m.card.lines(m.width, m.now()), n)
	case m.sheet == nil:
		lines = []string{line(m.width, text(dim, "waiting for the first frame"))}
	case m.detail != "":
		lines = m.scrolled(m.detailText(d), n)
	case m.ids != "":
		lines = m.scrolled(m.modelText(d, m.ids), n)
	default:
		lines = m.list(d, n)
	}
	for len(lines) < n {
		lines = append(lines, "")
	}
	return lines[:n]
}

// list is the rows of the page under their header.
func (m *model) list(d *drawing, n int) []string {
	keys := m.rowKeys()
	at := m.selected(keys)
	room := n - 1
	top := &m.tops[m.page]
	*top = min(max(*top, at-room+1, 0), max(len(keys)-room, 0), at)
	end := min(*top+room, len(keys))
	var lines []string
	switch m.page {
	case podsPage:
		lines = drawPods(d, m.orders[podsPage], m.width, m.unfold(m.visiblePods()), *top, end, at)
	case eventsPage:
		lines = drawRows(d, rankColumns, m.orders[eventsPage], m.width, m.visibleRanks(), *top, end, at)
	case picksPage:
		lines = drawRows(d, pickColumns, m.orders[picksPage], m.width, m.visiblePicks(), *top, end, at)
	case idsPage:
		lines = drawRows(d, idsColumns, m.orders[idsPage], m.width, m.visibleIDs(), *top, end, at)
	}
	if len(keys) == 0 {
		lines = append(lines, line(m.width, text(dim, m.emptiness())))
	}
	return lines
}

func (m *model) emptiness() string {
	switch {
	case m.filter != "" || m.faults:
		return "  nothing passes the filter (esc clears it, f shows all)"
	case m.page == picksPage:
		return "  no pick yet"
	case m.page == idsPage:
		return "  nobody tells token ids"
	}
	return "  no pods"
}

func drawRows[T any](d *drawing, columns []column[T], o order, w int, rows []T, from, to, at int) []string {
	t := newLayout(columns, o.column, w)
	lines := []string{t.header(d, o)}
	for i := from; i < to; i++ {
		lines = append(lines, t.row(d, rows[i], i == at))
	}
	return lines
}

// scrolled is the part of a text that fits, from where it was scrolled to.
func (m *model) scrolled(lines []string, n int) []string {
	m.scroll = min(m.scroll, max(len(lines)-n, 0))
	return lines[m.scroll:min(m.scroll+n, len(lines))]
}

// foot is a line about what is selected, or what has just happened, and the keys.
func (m *model) foot(d *drawing) []string {
	return []string{m.status(d), fitted(m.width, m.hints()...)}
}

func (m *model) status(d *drawing) string {
	switch {
	case m.typing != nothing:
		return m.typingLine()
	case m.disconnected():
		return line(m.width, text(bad, m.lost()))
	case m.notice != "" && m.now().Before(m.until):
		return line(m.width, plain(m.notice))
	case m.sheet == nil:
		return ""
	}
	var parts []cell
	if m.filter != "" {
		parts = append(parts, text(warn, "filter "+m.filter))
	}
	if m.faults {
		parts = append(parts, text(warn, "only faults"))
	}
	return line(m.width, append(parts, m.about(d)...)...)
}

// about says of the selected row who it is, and why it is not well: a narrow screen
// has no room for the columns that do.
func (m *model) about(d *drawing) []cell {
	keys := m.rowKeys()
	if len(keys) == 0 || m.detail != "" || m.ids != "" {
		return nil
	}
	switch i := m.selected(keys); m.page {
	case picksPage:
		if m.card != nil {
			return nil // it says all of it
		}
		return aboutPick(m.visiblePicks()[i])
	case idsPage:
		return aboutProvider(m.visibleIDs()[i])
	}
	return aboutPod(d, m.selectedPod())
}

func aboutPod(d *drawing, r *podRow) []cell {
	parts := []cell{plain(r.Name), plain(r.Addr), plain(r.Engine), text(dim, "breaker ") + breakerCell(d, r), syncCell(r.sync)}
	if r.Telemetry.Error != "" {
		return append(parts, text(warn, r.Telemetry.Error))
	}
	if x := worst(r.Ranks); x != nil && r.sync != view.Live.String() {
		parts = append(parts, text(warn, x.Why), plain(x.Detail))
	}
	return parts
}

func aboutPick(p *view.RecentPick) []cell {
	parts := []cell{plain(deref(p.Pod)), text(warn, deref(p.Reason)), plain(p.Model)}
	if p.RunnerUp != nil {
		parts = append(parts, plain("over "+*p.RunnerUp))
	}
	return append(parts, plain("read in "+amount(p.ReadUs/1e3)+" ms, decided in "+amount(p.TookUs)+" us"))
}

func aboutProvider(r *idsRow) []cell {
	return []cell{plain(r.model), plain(r.Name), providerCell(r), text(warn, r.Why), plain(r.Detail)}
}

// lost says that there is no news, for how long, and why.
func (m *model) lost() string {
	s := "disconnected"
	if m.sheet != nil {
		s += ", last data " + long(m.since()) + " ago"
	}
	if m.failure != nil {
		s += ": " + strings.SplitN(m.failure.Error(), ";", 2)[0]
	}
	return s + "; trying on"
}

func (m *model) hints() []piece {
	hint := func(s string, spare int) piece { return piece{text(dim, s), spare} }
	switch {
	case m.typing == aCommand:
		return []piece{hint("enter do", 0), hint("tab complete", 0), hint("esc leave", 0)}
	case m.typing == aFilter:
		return []piece{hint("enter keep", 0), hint("esc clear", 0)}
	case m.over():
		list := []piece{hint("esc back", 0), hint("j k scroll", 1), hint("e explain", 4), hint("p pause", 2), hint("< > step", 3), hint("? help", 0), hint("q quit", 0)}
		if m.paused {
			list[3] = hint("p live", 0)
		}
		return list
	case m.file:
		return []piece{hint("? help", 0), hint("1-4 views", 2), hint("enter look", 3), hint("< > step", 0), hint("[ ] by ten", 1), hint("q quit", 0)}
	case m.paused:
		return []piece{
			hint("? help", 0), hint("1-4 views", 3), hint("enter look", 4), hint("< > step", 0), hint("[ ] by ten", 1),
			hint("w write", 2), hint("p live", 0), hint("q quit", 0),
		}
	}
	return []piece{
		hint("? help", 0), hint("1-4 views", 1), hint("/ filter", 3), hint("s sort", 4), hint("enter look", 2),
		hint("e explain", 6), hint("p pause", 5), hint("q quit", 0),
	}
}

func (m *model) helpText() []string {
	lines := []string{"", line(m.width, head("  KEYS"))}
	for _, k := range keys {
		lines = append(lines, meaning(m.width, 28, k.keys, k.does)...)
	}
	lines = append(lines, "", line(m.width, head("  COMMANDS")))
	for _, c := range commands {
		lines = append(lines, meaning(m.width, 28, ":"+c.name+" "+c.takes, c.does)...)
	}
	lines = append(lines, "", line(m.width, head("  COLUMNS")))
	for _, c := range columnHelp {
		lines = append(lines, meaning(m.width, 17, c[0], c[1])...)
	}
	return append(lines, "", line(m.width, text(dim, fmt.Sprintf("  kept to step back through: %s", &m.history))))
}

// meaning is a word with what it means beside it, from a column on.
func meaning(w, from int, word, means string) []string {
	means = lipgloss.NewStyle().Width(w - from).Render(means)
	return strings.Split(lipgloss.JoinHorizontal(lipgloss.Top, fmt.Sprintf("  %-*s", from-2, word), means), "\n")
}

// columnHelp says what the columns of all views mean.
var columnHelp = [][2]string{
	{"STATE", "of a pod the worst that applies: DOWN nothing answers, STALE metrics too old, OPEN a breaker keeps it out, BLIND its events are not heard (SYNC says why), SLOW degraded hardware, drain gets nothing new, ok; of token ids whether the latest prompt was told"},
	{"REQ/s", "picks of this pod, over the last ten seconds"},
	{"SHARE", "of all picks, in percent, over the last minute"},
	{"WAIT RUN", "requests waiting and running, by the engine's metrics; ? unknown"},
	{"WAITED", "the course of WAIT through the last twelve frames, of the longest queue of all pods"},
	{"FLY", "requests in flight by our own count; those before their first token, above too, may count as running with the engine"},
	{"QUEUE", "time until the pod has answered what is placed on it"},
	{"KV%", "of the KV pool in use"},
	{"HIT%", "prompt tokens of its requests that were counted as cached, over the last minute; of a pick those of its prompt"},
	{"DEPTH P50/95", "how much of their prompts the picks of that minute found cached: full up to what half of them did not exceed, thin up to what nineteen of twenty did not; P50/95 are these in percent"},
	{"TIERS BLOCKS", "blocks held on GPU, host, disk and remote, beside the pod that holds most; their number"},
	{"BREAKER", "requests before their first token, of the number that opens it; or server errors, and the time to the next probe"},
	{"HARDWARE", "what a device exporter says of the pod's GPUs; ? none tells"},
	{"EVENT AGE", "seconds since the last event, and since the last good scrape, of token ids since the comparison; ! too old"},
	{"EV/s", "event batches per second"},
	{"SYNC FOR", "how far the index can be believed about the pod's event streams, the worst of them, or one of them, and since when"},
	{"LAST SEQ", "seconds since the stream's last event, and the number of its last batch"},
	{"MISSED LOST", "batches that did not come live, and those of them that no replay had"},
	{"BAD DROP", "what could not be read, and batches that serve had no room for"},
	{"PURGE", "times that all blocks of the rank were dropped, rather than kept in doubt"},
	{"STORED REMOVED", "events of blocks that were stored and removed"},
	{"LAG", "how much later than the promptest batch the last one came"},
	{"SCORE s", "of the pod that was picked, in seconds; e has its terms"},
	{"MARGIN", "its lead over RUNNER-UP, in seconds; tie: the hash of the request id chose"},
	{"REASON WHY", "why nothing was matched, or is not as it should be: a word of docs/operations.md; DETAIL in its own words"},
	{"us", "the time that the decision took, in microseconds"},
	{"BY", "who tells the token ids, in the order in which they are asked; TOLD and FAILED count prompts"},
	{"PARITY", "of the token ids made here with the engine's: passed, all probes gave the same; failed at the position of the first wrong id, of a probe or, in events, of a routed request; not-run, nothing was compared. PROBE is that probe, or how many were compared"},
	{"EQUAL DIFFER", "requests by what events said of their ids"},
	{"FILES", "where the model's own files come from"},
}
