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

// Column describes one column. Elastic and wrapped columns give way, from the last
// one back, when a terminal is too narrow.
type Column struct {
	Name    string
	Right   bool // numbers
	Elastic bool // is cut, with a mark
	Wrap    bool // goes on below: what says what to do must not be cut
}

// Table aligns rows under a header. On a terminal no line is wider than it: elastic
// columns are cut, wrapped ones take several lines, and columns without room go
// below. On a pipe each row is one line and nothing is cut.
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

// Write prints the table to w as s would show it. Columns that a terminal has no
// room for go below, in bands that begin with the first column again: a term of a
// score must not vanish without a sign.
func (t *Table) Write(w io.Writer, s *Streams) error {
	var b strings.Builder
	for _, columns := range t.bands(s.lineLimit()) {
		t.band(columns).write(&b, s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// bands groups the columns by what fits on a line; one band is the rule.
func (t *Table) bands(limit int) [][]int {
	least := t.least()
	bands, used := [][]int{nil}, Cells(t.Indent)
	for i, w := range least {
		band := &bands[len(bands)-1]
		if used+w > limit && len(*band) > 1 {
			bands = append(bands, []int{0})
			band, used = &bands[len(bands)-1], Cells(t.Indent)+least[0]+len(gap)
		}
		*band = append(*band, i)
		used += w + len(gap)
	}
	return bands
}

// band is the table of some columns.
func (t *Table) band(columns []int) *Table {
	if len(columns) == len(t.Columns) {
		return t
	}
	part := &Table{Indent: t.Indent}
	for _, i := range columns {
		part.Columns = append(part.Columns, t.Columns[i])
	}
	for _, row := range t.rows {
		var cells []Cell
		for _, i := range columns {
			if i < len(row) {
				cells = append(cells, row[i])
			}
		}
		part.rows = append(part.rows, cells)
	}
	return part
}

func (t *Table) write(b *strings.Builder, s *Streams) {
	widths := t.widths(s)
	header := make([]Cell, len(t.Columns))
	named := false
	for i, c := range t.Columns {
		header[i] = Cell{c.Name, Dim}
		named = named || c.Name != ""
	}
	if named {
		t.line(b, s, header, widths)
	}
	for _, row := range t.rows {
		t.row(b, s, row, widths)
	}
}

// row writes one row, on as many lines as its wrapped columns need.
func (t *Table) row(b *strings.Builder, s *Streams, row []Cell, widths []int) {
	wrapped, height := make([][]string, len(row)), 1
	for i, c := range row {
		if t.Columns[i].Wrap {
			wrapped[i] = Wrap(c.Text, max(widths[i], 1))
			height = max(height, len(wrapped[i]))
		}
	}
	for k := range height {
		part := make([]Cell, len(row))
		for i, c := range row {
			switch {
			case k < len(wrapped[i]):
				part[i] = Cell{wrapped[i][k], c.Style}
			case k == 0:
				part[i] = c
			}
		}
		t.line(b, s, part, widths)
	}
}

// line writes one line. Blanks are held back until text follows them, so that no
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

// natural is what the widest cell of each column needs.
func (t *Table) natural() []int {
	w := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		w[i] = Cells(c.Name)
		for _, row := range t.rows {
			if i < len(row) {
				w[i] = max(w[i], Cells(row[i].Text))
			}
		}
	}
	return w
}

// What is left of columns that give way: a few letters, or a few words.
const (
	leastElastic = 8
	leastWrapped = 24
)

// least is what each column must have.
func (t *Table) least() []int {
	w := t.natural()
	for i, c := range t.Columns {
		switch {
		case c.Elastic:
			w[i] = min(w[i], max(Cells(c.Name), leastElastic))
		case c.Wrap:
			w[i] = min(w[i], max(Cells(c.Name), leastWrapped))
		}
	}
	return w
}

// widths gives every column what its widest cell needs and takes back from the
// elastic ones what a terminal does not have.
func (t *Table) widths(s *Streams) []int {
	w, least := t.natural(), t.least()
	total := Cells(t.Indent) + len(gap)*max(len(w)-1, 0)
	for i := range w {
		total += w[i]
	}
	limit := s.lineLimit()
	for i := len(w) - 1; i >= 0 && total > limit; i-- {
		cut := min(total-limit, w[i]-least[i])
		w[i] -= cut
		total -= cut
	}
	return w
}
