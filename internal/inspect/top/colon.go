package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/eppctl/eppctl/internal/inspect/out"
)

// commands are the words of the command line behind `:`, with what they take.
var commands = []struct{ name, takes, does string }{
	{"pods", "", "the view of pods"},
	{"events", "", "the view of event streams"},
	{"picks", "", "the view of recent picks"},
	{"ids", "", "the view of token ids by model"},
	{"pod", "NAME", "look into a pod"},
	{"model", "NAME", "look into a model"},
	{"sort", "COLUMN", "sort the view by it, -COLUMN in reverse"},
	{"filter", "TEXT", "as / does; nothing clears it"},
	{"at", "TIME", "the frame of 11:42:07, or of -30s"},
	{"interval", "TIME", "between frames, 100ms to 1m"},
	{"write", "", "as w does"},
	{"live", "", "back to the newest frame"},
	{"help", "", "as ? does"},
	{"quit", "", "as q does"},
}

// command does what a line says. It changes nothing but the screen, as keys do.
func (m *model) command(line string) tea.Cmd {
	word, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
	arg = strings.TrimSpace(arg)
	if word == "" {
		return nil
	}
	i := commandNamed(word)
	if i < 0 {
		m.tell(fmt.Sprintf("no command %q; ? lists them", word))
		return nil
	}
	if c := commands[i]; c.takes != "" && arg == "" && c.name != "filter" {
		m.tell(fmt.Sprintf("%s: expected %s: %s", c.name, c.takes, c.does))
		return nil
	}
	cmd, err := m.do(commands[i].name, arg)
	if err != nil {
		m.tell(commands[i].name + ": " + err.Error())
	}
	return cmd
}

// commandNamed is the place of the command of that name, or of the first that begins
// so; -1 = none.
func commandNamed(word string) int {
	for i := range commands {
		if commands[i].name == word {
			return i
		}
	}
	return slices.IndexFunc(commands, func(c struct{ name, takes, does string }) bool { return strings.HasPrefix(c.name, word) })
}

func (m *model) do(name, arg string) (tea.Cmd, error) {
	switch name {
	case "pods":
		m.turn(podsPage)
	case "events":
		m.turn(eventsPage)
	case "picks":
		m.turn(picksPage)
	case "ids":
		m.turn(idsPage)
	case "pod":
		return m.lookIntoPod(arg)
	case "model":
		return nil, m.lookIntoModel(arg)
	case "sort":
		return nil, m.sortBy(arg)
	case "filter":
		m.filter = cut(arg, maxFilter)
	case "at":
		return nil, m.goTo(arg)
	case "interval":
		d, err := time.ParseDuration(arg)
		if err != nil || d < minInterval || d > maxInterval {
			return nil, fmt.Errorf("found %q; expected %s to %s", arg, minInterval, maxInterval)
		}
		m.interval = d
	case "write":
		m.write()
	case "live":
		if m.sheet != nil {
			m.live()
		}
	case "help":
		m.help, m.scroll = true, 0
	case "quit":
		return tea.Quit, nil
	}
	return nil, nil
}

func (m *model) lookIntoPod(name string) (tea.Cmd, error) {
	list := m.podNames()
	if !slices.Contains(list, name) {
		return nil, fmt.Errorf("no pod %q in this frame", name)
	}
	m.turn(m.page)
	m.detail = name
	return m.ask(), nil
}

func (m *model) lookIntoModel(name string) error {
	if !slices.Contains(m.modelNames(), name) {
		return fmt.Errorf("no model %q in this frame", name)
	}
	m.turn(idsPage)
	m.ids = name
	return nil
}

// sortBy is s and r by name. A minus reverses.
func (m *model) sortBy(arg string) error {
	name, reverse := strings.CutPrefix(arg, "-")
	i := slices.IndexFunc(m.sortable(), func(c string) bool { return strings.EqualFold(c, name) })
	if i < 0 || name == "" {
		return fmt.Errorf("found %q; expected a column to sort by: %s", arg, strings.Join(named(m.sortable()), " "))
	}
	m.orders[m.page] = order{i, reverse}
	return nil
}

// sortable are the columns of the page by place; "" where nobody sorts by one.
func (m *model) sortable() []string {
	switch m.page {
	case podsPage:
		return sortNames(podColumns)
	case eventsPage:
		return sortNames(rankColumns)
	case idsPage:
		return sortNames(idsColumns)
	}
	return sortNames(pickColumns)
}

func sortNames[T any](columns []column[T]) []string {
	list := make([]string, len(columns))
	for i := range columns {
		if columns[i].less != nil {
			list[i] = columns[i].name
		}
	}
	return list
}

func named(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" })
}

// goTo pauses at the newest frame that is no younger than a time of day, or than so
// long before the newest; at the oldest when all are younger.
func (m *model) goTo(arg string) error {
	if m.sheet == nil {
		return fmt.Errorf("there is no frame yet")
	}
	newest := m.history.at(m.history.newest()).got
	var at time.Time
	if d, err := time.ParseDuration(arg); err == nil && d <= 0 {
		at = newest.Add(d)
	} else if at, err = timeOfDay(arg, newest.In(m.zone)); err != nil {
		return err
	}
	n := m.history.newest()
	for n > m.history.gone && m.history.at(n).got.After(at) {
		n--
	}
	m.step(n - m.shown)
	return nil
}

// timeOfDay is the last such time before the end of a second.
func timeOfDay(s string, before time.Time) (time.Time, error) {
	for _, layout := range []string{"15:04:05", "15:04"} {
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		y, mon, d := before.Date()
		at := time.Date(y, mon, d, t.Hour(), t.Minute(), t.Second(), int(time.Second-1), before.Location())
		if at.Truncate(time.Second).After(before) {
			at = at.AddDate(0, 0, -1)
		}
		return at, nil
	}
	return time.Time{}, fmt.Errorf("found %q; expected a time such as 11:42:07, or -30s", s)
}

func (m *model) podNames() (list []string) {
	if m.sheet != nil {
		for _, r := range m.sheet.pods {
			list = append(list, r.Name)
		}
	}
	return list
}

func (m *model) modelNames() (list []string) {
	if m.sheet != nil {
		for _, r := range m.sheet.ids {
			list = append(list, r.model)
		}
	}
	return slices.Compact(list)
}

// complete goes on with a line as far as what it can mean agrees.
func (m *model) complete(line string) string {
	word, arg, has := strings.Cut(line, " ")
	var can []string
	if !has {
		for _, c := range commands {
			can = append(can, c.name)
		}
		return common(can, word)
	}
	i := commandNamed(word)
	if i < 0 {
		return line
	}
	switch commands[i].name {
	case "pod", "filter":
		can = m.podNames()
	case "model":
		can = m.modelNames()
	case "sort":
		for _, name := range named(m.sortable()) {
			can = append(can, strings.ToLower(name))
		}
	}
	return commands[i].name + " " + common(can, arg)
}

// common is the longest beginning of all words that begin so; start when none does.
func common(words []string, start string) string {
	found, any := "", false
	for _, w := range words {
		if !strings.HasPrefix(w, start) || out.Clean(w) != w { // a name that cannot be typed is not offered
			continue
		}
		if !any {
			found, any = w, true
			continue
		}
		for !strings.HasPrefix(w, found) {
			found = cut(found, len([]rune(found))-1)
		}
	}
	if !any {
		return start
	}
	return found
}

// cut is at most so many letters of s.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}
