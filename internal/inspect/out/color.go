package out

import "fmt"

// Style is one of the 16 colours every terminal has. Blue, yellow and magenta
// say good, warning and bad: red and green look alike to one man in twelve. No
// style ever stands alone, a word says the same.
type Style string

// The styles.
const (
	Plain Style = ""
	Bold  Style = "1"
	Dim   Style = "2"
	Good  Style = "34"
	Warn  Style = "33"
	Bad   Style = "35"
)

// Modes are the values of --color.
func Modes() []string { return []string{"auto", "always", "never"} }

// SetColor decides whether Out gets colour: the flag first, then NO_COLOR,
// CLICOLOR_FORCE, CLICOLOR, and last what stdout is.
func (s *Streams) SetColor(mode string) error {
	switch mode {
	case "always":
		s.Color = true
	case "never":
		s.Color = false
	case "auto", "":
		s.Color = s.autoColor()
	default:
		return fmt.Errorf("--color: found %q; expected one of auto, always, never", mode)
	}
	return nil
}

func (s *Streams) autoColor() bool {
	if s.Env("NO_COLOR") != "" {
		return false
	}
	if f := s.Env("CLICOLOR_FORCE"); f != "" && f != "0" {
		return true
	}
	if s.Env("CLICOLOR") == "0" {
		return false
	}
	return s.OutTTY && s.Env("TERM") != "dumb"
}

// Paint wraps text in a style, when there is colour.
func (s *Streams) Paint(st Style, text string) string {
	if !s.Color || st == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}
