package top

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/inspect/top/quiet"
)

func init() { quiet.Restore() } // lipgloss is initialised by now

// look is how text stands out, as lipgloss renders it: what turns it on, and off.
// Rendering each cell anew was a third of a drawing. Nothing is told by colour alone,
// each part of a bar has a glyph of its own.
type look = *struct{ on, off string }

// none is the look of plain text.
var none look

// The looks. The words of out.Style are those of `explain`, whose card is a page
// here: the 16 colours, of which blue, yellow and magenta say good, warning and bad.
// Bars have true colours: bubbletea turns them into what the terminal has, down to
// none.
var (
	bold    = rendered(lipgloss.NewStyle().Bold(true))
	dim     = rendered(lipgloss.NewStyle().Faint(true))
	reverse = rendered(lipgloss.NewStyle().Reverse(true))
	good    = rendered(lipgloss.NewStyle().Foreground(lipgloss.Blue))
	warn    = rendered(lipgloss.NewStyle().Foreground(lipgloss.Yellow))
	bad     = rendered(lipgloss.NewStyle().Foreground(lipgloss.Magenta))

	cool    = hue("#5f87ff") // blue, as good
	warm    = hue("#d7af00") // yellow, as warn
	hot     = hue("#d75faf") // magenta, as bad
	onHost  = hue("#5fafaf") // teal
	onDisk  = hue("#af8700") // ochre
	onStore = hue("#af87d7") // violet
)

func hue(hex string) look { return rendered(lipgloss.NewStyle().Foreground(lipgloss.Color(hex))) }

func rendered(s lipgloss.Style) look {
	const letter = "x"
	on, off, _ := strings.Cut(s.Render(letter), letter)
	return &struct{ on, off string }{on, off}
}

// cell is what stands in one place of a line, with its looks.
type cell string

// longestText is more than any line shows: a name of megabytes must not be looked
// through at every drawing.
const longestText = 4096

// text is a cell of one look. It is the only way for text to get onto the screen,
// so that no name from the wire reaches the terminal as it came.
func text(l look, s string) cell {
	s = out.Clean(s[:min(len(s), longestText)])
	if l == none || s == "" {
		return cell(s)
	}
	return cell(l.on + s + l.off)
}

func plain(s string) cell { return text(none, s) }

func (c cell) width() int { return lipgloss.Width(string(c)) }

// fit brings a cell into exactly w columns: what is too long is cut, with a mark.
// lipgloss.PlaceHorizontal does the same, and renders a style for the blanks.
func (c cell) fit(w int, at lipgloss.Position) string {
	n := c.width()
	if n > w {
		c = cell(ansi.Truncate(string(c), w, "…"))
		n = c.width()
	}
	blanks := strings.Repeat(" ", max(w-n, 0))
	if at == lipgloss.Right {
		return blanks + string(c)
	}
	return string(c) + blanks
}

// broken is a cell in pieces of at most w columns, parted at blanks where there are any.
func (c cell) broken(w int) (pieces []cell) {
	for c.width() > w {
		at, blank := w, 0
		if begin := ansi.Strip(ansi.Truncate(string(c), w+1, "")); strings.LastIndexByte(begin, ' ') > 0 {
			at, blank = lipgloss.Width(begin[:strings.LastIndexByte(begin, ' ')]), 1
		}
		piece := cell(ansi.Truncate(string(c), at, "")) // less by one where a wide letter stands across
		pieces, c = append(pieces, piece), cutLeft(c, piece.width()+blank)
	}
	return append(pieces, c)
}

// cutLeft takes so many columns away from the left.
func cutLeft(c cell, n int) cell {
	if n <= 0 {
		return c
	}
	return cell(ansi.TruncateLeft(string(c), n, ""))
}

// line joins cells with blanks between into exactly w columns.
func line(w int, cells ...cell) string { return joined(cells...).fit(w, lipgloss.Left) }

// joined are those cells that say something, with blanks between.
func joined(cells ...cell) (all cell) {
	for _, c := range cells {
		if c != "" && all != "" {
			all += "  "
		}
		all += c
	}
	return all
}

// asciiOnly replaces what is no ASCII: the marks by their like, what else stands in a
// column by ?. Escape sequences are ASCII.
func asciiOnly(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexFunc(s, func(r rune) bool { return r > 0x7e })
		if i < 0 {
			return b.String() + s
		}
		b.WriteString(s[:i])
		s = s[i:]
		letter, width := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
		if like, ok := asciiLike[letter]; ok {
			b.WriteByte(like)
		} else {
			b.WriteString(strings.Repeat("?", width))
		}
		s = s[len(letter):]
	}
}

var asciiLike = map[string]byte{"…": '~', "─": '-', "→": '>'}
