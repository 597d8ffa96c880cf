package out

import (
	"io"
	"math"
	"strings"
)

// Cell is one field of a table.
type Cell struct {
	Text  string
	Style Style
}

// Column describes one column. Elastic columns give way, from the last one
// back, when a terminal is too narrow.
type Column struct {
	Name    string
	Right   bool // numbers
	Elastic bool
}

// Table aligns rows under a header. On a terminal no line is wider than it; on a
// pipe nothing is cut.
type Table struct {
	Indent  string
	Columns []Column
	rows    [][]Cell
}

// Add appends a row of plain texts.
func (t *Table) Add(texts ...string) {
	row := make([]Cell, len(texts))
	for i, s := range texts {
		row[i].Text = s
	}
	t.AddCells(row...)
}

// AddCells appends a row. Texts are cleaned here, so that no caller can forget.
func (t *Table) AddCells(row ...Cell) {
	for i := range row {
		row[i].Text = Clean(row[i].Text)
	}
	t.rows = append(t.rows, row)
}

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

const gap = "  "

// Write prints the table to w as s would show it.
func (t *Table) Write(w io.Writer, s *Streams) error {
	widths := t.widths(s)
	var b strings.Builder
	header := make([]Cell, len(t.Columns))
	named := false
	for i, c := range t.Columns {
		header[i] = Cell{c.Name, Dim}
		named = named || c.Name != ""
	}
	if named {
		t.line(&b, s, header, widths)
	}
	for _, row := range t.rows {
		t.line(&b, s, row, widths)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// line writes one row. Blanks are held back until text follows them, so that no
// line ends in them.
func (t *Table) line(b *strings.Builder, s *Streams, row []Cell, widths []int) {
	left, blanks := s.lineLimit(), Cells(t.Indent)
	for i, c := range row {
		text := Fit(c.Text, widths[i])
		fill := widths[i] - Cells(text)
		if t.Columns[i].Right {
			blanks, fill = blanks+fill, 0
		}
		if text = Fit(text, left-blanks); text != "" {
			b.WriteString(strings.Repeat(" ", blanks) + s.Paint(c.Style, text))
			left, blanks = left-blanks-Cells(text), 0
		}
		blanks += fill + len(gap)
	}
	b.WriteByte('\n')
}

// lineLimit is the width a line may have.
func (s *Streams) lineLimit() int {
	if !s.OutTTY || s.Width <= 0 {
		return math.MaxInt32
	}
	return s.Width
}

// widths gives every column what its widest cell needs and takes back from the
// elastic ones what a terminal does not have.
func (t *Table) widths(s *Streams) []int {
	w := make([]int, len(t.Columns))
	total := Cells(t.Indent) + len(gap)*max(len(w)-1, 0)
	for i, c := range t.Columns {
		w[i] = Cells(c.Name)
		for _, row := range t.rows {
			if i < len(row) {
				w[i] = max(w[i], Cells(row[i].Text))
			}
		}
		total += w[i]
	}
	limit := s.lineLimit()
	for i := len(w) - 1; i >= 0 && total > limit; i-- {
		if c := t.Columns[i]; c.Elastic {
			least := max(Cells(c.Name), 8)
			cut := min(total-limit, max(w[i]-least, 0))
			w[i] -= cut
			total -= cut
		}
	}
	return w
}
