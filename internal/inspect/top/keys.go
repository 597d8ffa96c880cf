package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/eppctl/eppctl/internal/inspect/out"
)

// keys is every key with what it does, as the help shows them.
var keys = []struct{ keys, does string }{
	{"j k ↓ ↑ g G pgup pgdn", "move"},
	{"enter, esc", "look into a pod, a pick or a model; back"},
	{"x X", "ranks of the pod below it, or of all pods"},
	{"e", "explain the last pick of the pod"},
	{"1 2 3 4 tab", "pods, event streams, recent picks, token ids"},
	{"s S r", "sort by the next or previous column; reverse"},
	{"/", "filter by pod name, !text for all others; esc clears"},
	{"f", "only pods with faults"},
	{":", "command line, listed below; tab completes"},
	{"p space", "pause; collecting goes on"},
	{"< >", "a frame back or forth, [ ] ten: what was it like?"},
	{"+ -", "interval between frames"},
	{"w", "write the frame that is shown to a file, as JSON"},
	{"a", "ASCII instead of block characters"},
	{"? h", "this help"},
	{"q ctrl+c", "quit"},
}

// press does what a key means. It changes nothing but the screen: top only looks.
func (m *model) press(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	if m.typing != nothing {
		return m.typeLetter(name, k.Text)
	}
	switch name {
	case "q":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "?", "h":
		m.help, m.scroll = !m.help, 0
	case "esc", "backspace":
		m.back()
	case ":":
		m.typing, m.typed = aCommand, ""
	case "p", "space":
		if m.paused {
			m.live()
		} else {
			m.paused = m.sheet != nil
		}
	case "<", "left", ",":
		m.step(-1)
	case ">", "right", ".":
		m.step(1)
	case "[":
		m.step(-10)
	case "]":
		m.step(10)
	case "+", "=":
		m.interval = min(m.interval*2, maxInterval)
		m.tell("every " + m.interval.String())
	case "-":
		m.interval = max(m.interval/2, minInterval)
		m.tell("every " + m.interval.String())
	case "a":
		if m.glyphs == &asciiGlyphs {
			m.glyphs = &blockGlyphs
		} else {
			m.glyphs = &asciiGlyphs
		}
	case "w":
		m.write()
	case "1", "2", "3", "4":
		m.turn(page(name[0] - '1'))
	case "tab":
		m.turn((m.page + 1) % pages)
	case "shift+tab":
		m.turn((m.page + pages - 1) % pages)
	default:
		return m.pressIn(name)
	}
	return nil
}

// pressIn is for the keys of lists and texts.
func (m *model) pressIn(name string) tea.Cmd {
	if by, ok := m.distance(name); ok {
		m.move(by)
		return nil
	}
	if m.sheet == nil || m.help || m.card != nil {
		return nil
	}
	if name == "e" {
		return m.explainSelected()
	}
	if m.detail != "" || m.ids != "" {
		return nil
	}
	switch name {
	case "x":
		m.fold()
	case "X":
		m.foldAll()
	case "enter":
		return m.enter()
	case "/":
		m.typing = aFilter
	case "f":
		m.faults = !m.faults
	case "s":
		m.orders[m.page].column = m.nextColumn(1)
	case "S":
		m.orders[m.page].column = m.nextColumn(-1)
	case "r":
		m.orders[m.page].reverse = !m.orders[m.page].reverse
	}
	return nil
}

// distance is how many lines a key moves.
func (m *model) distance(name string) (by int, ok bool) {
	const all = 1 << 20
	switch name {
	case "j", "down":
		by = 1
	case "k", "up":
		by = -1
	case "pgdown", "ctrl+d":
		by = max(m.height/2, 1)
	case "pgup", "ctrl+u":
		by = -max(m.height/2, 1)
	case "g", "home":
		by = -all
	case "G", "end":
		by = all
	}
	return by, by != 0
}

// move scrolls a text, or moves the selection of a list.
func (m *model) move(by int) {
	if m.over() {
		m.scroll = max(m.scroll+by, 0) // the drawing knows where the end is
		return
	}
	keys := m.rowKeys()
	if len(keys) == 0 {
		return
	}
	m.cursors[m.page] = keys[min(max(m.selected(keys)+by, 0), len(keys)-1)]
}

// over reports that a text lies over the page.
func (m *model) over() bool { return m.help || m.card != nil || m.detail != "" || m.ids != "" }

// turn shows another page, whatever lies over it.
func (m *model) turn(to page) {
	m.page, m.help, m.card, m.detail, m.ids, m.scroll = to, false, nil, "", "", 0
}

func (m *model) back() {
	switch {
	case m.help:
		m.help = false
	case m.card != nil:
		m.card = nil
	case m.detail != "":
		m.detail = ""
	case m.ids != "":
		m.ids = ""
	default:
		m.filter = ""
	}
	m.scroll = 0
}

// enter looks into what is selected.
func (m *model) enter() tea.Cmd {
	switch m.page {
	case picksPage:
		return m.explainSelected()
	case idsPage:
		if list := m.visibleIDs(); len(list) > 0 {
			m.ids, m.scroll = list[m.selected(m.rowKeys())].model, 0
		}
	default:
		if r := m.selectedPod(); r != nil {
			m.detail, m.scroll = r.Name, 0
			return m.ask()
		}
	}
	return nil
}

// explainSelected asks for the card of the selected pick, or of the last one that
// went to the selected pod.
func (m *model) explainSelected() tea.Cmd {
	if m.page == picksPage && m.detail == "" {
		if list := m.visiblePicks(); len(list) > 0 {
			return m.explain(list[m.selected(m.rowKeys())].PickID)
		}
		return nil
	}
	name := m.detail
	if m.page == idsPage && name == "" {
		return nil // no pod is selected
	}
	if r := m.selectedPod(); name == "" && r != nil {
		name = r.Name
	}
	for _, p := range m.sheet.picks {
		if deref(p.Pod) == name && name != "" {
			return m.explain(p.PickID)
		}
	}
	m.tell(fmt.Sprintf("none of the last %d picks went to %s", len(m.sheet.picks), name))
	return nil
}

// write saves the frame that is shown.
func (m *model) write() {
	if m.sheet == nil {
		m.tell("no frame to write")
		return
	}
	f := m.history.at(m.shown)
	at := strings.Map(func(r rune) rune {
		if strings.ContainsRune("0123456789T", r) {
			return r
		}
		return -1
	}, strings.SplitN(m.sheet.At, ".", 2)[0])
	name := fmt.Sprintf("eppctl-top-%s-%d.json", at, m.shown)
	if err := m.save(name, out.JSON(f.raw)); err != nil {
		m.tell(err.Error())
		return
	}
	m.tell("wrote " + name)
}

// The interval between frames.
const (
	minInterval = 100 * time.Millisecond
	maxInterval = time.Minute
)
