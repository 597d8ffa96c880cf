package top

import (
	tea "charm.land/bubbletea/v2"

	"github.com/eppctl/eppctl/internal/inspect/out"
)

// entry is what is being typed at the bottom of the screen.
type entry int

const (
	nothing  entry = iota
	aFilter        // shows at once
	aCommand       // is done by enter
)

// maxFilter is more than any name a filter could mean, maxCommand than any command.
const (
	maxFilter  = 64
	maxCommand = 300
)

// typeLetter takes a key into the line that is being typed.
func (m *model) typeLetter(name, text string) tea.Cmd {
	line, most := &m.filter, maxFilter
	if m.typing == aCommand {
		line, most = &m.typed, maxCommand
	}
	switch name {
	case "enter":
		was := m.typing
		if m.typing = nothing; was == aCommand {
			return m.command(m.typed)
		}
	case "esc":
		m.typing, *line = nothing, ""
	case "tab":
		if m.typing == aCommand {
			*line = cut(m.complete(*line), most)
		}
	case "backspace":
		if *line == "" {
			m.typing = nothing
		}
		*line = cut(*line, max(len([]rune(*line))-1, 0))
	case "ctrl+u":
		*line = ""
	default:
		*line = cut(*line+out.Clean(text), most)
	}
	return nil
}

// typingLine is the line that is being typed, with its cursor.
func (m *model) typingLine() string {
	c := plain("filter: " + m.filter)
	if m.typing == aCommand {
		c = plain(":" + m.typed)
	}
	over := c.width() + 1 - m.width // what is typed last is seen
	return line(m.width, cutLeft(c, over)+text(reverse, "_"))
}
