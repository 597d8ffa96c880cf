package top

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
)

// column is one column of a table of rows T.
type column[T any] struct {
	name  string
	width int               // 0 = what is left, once
	at    lipgloss.Position // numbers stand right
	bar   bool              // says what another column says in numbers
	// need orders the columns by how much they are missed: as many are shown, from
	// 0 on, as the screen has room for.
	need int
	cell func(d *drawing, r T) cell
	// less orders rows as they are looked for: names from A, numbers from the
	// highest. nil = nobody sorts by it.
	less func(a, b T) int
}

// drawing is what cells are drawn with.
type drawing struct {
	*glyphs
	sheet *sheet
	later int64 // ms that have passed since the frame came: ages go on
	zone  *time.Location
	// waited is the course of a pod's queue through the last frames.
	waited func(pod string) []float64
}

// order is how a view is sorted.
type order struct {
	column  int
	reverse bool
}

// sorted orders rows; ties keep the order in which they came, which is by name.
func sorted[T any](columns []column[T], o order, rows []T) []T {
	less := columns[o.column].less
	slices.SortStableFunc(rows, func(a, b T) int {
		if o.reverse {
			a, b = b, a
		}
		return less(a, b)
	})
	return rows
}

// next is the following column that rows can be sorted by.
func next[T any](columns []column[T], from, step int) int {
	for i := from; ; {
		i = (i + step + len(columns)) % len(columns)
		if columns[i].less != nil || i == from {
			return i
		}
	}
}

// leastName is what the column of what is left must have.
const leastName = 12

// chosen are the columns that w has room for, each with its width. The one that rows
// are sorted by is among them, however little it is needed: an order that nobody can
// see looks like none.
func chosen[T any](columns []column[T], by, w int) (list []int, widths []int) {
	wide := func(c *column[T]) int { return cmp.Or(c.width, leastName) + 1 }
	left := w - 1 // the mark of the selected row; a blank before each column
	byNeed := make([]int, len(columns))
	for i := range byNeed {
		byNeed[i] = i
	}
	need := func(i int) int {
		if i == by {
			return 0
		}
		return columns[i].need
	}
	slices.SortStableFunc(byNeed, func(a, b int) int { return need(a) - need(b) })
	for _, i := range byNeed {
		if n := wide(&columns[i]); n <= left {
			list, left = append(list, i), left-n
		} else {
			break
		}
	}
	slices.Sort(list)
	for _, i := range list {
		n := columns[i].width
		if n == 0 {
			n = leastName + min(left, longestName-leastName)
		}
		widths = append(widths, n)
	}
	return list, widths
}

// longestName is as much as the column of what is left ever takes.
const longestName = 40

// layout is what a table shows on a screen of some width.
type layout[T any] struct {
	columns []column[T]
	list    []int // of those columns
	widths  []int // of each of these
}

func newLayout[T any](columns []column[T], by, w int) *layout[T] {
	list, widths := chosen(columns, by, w)
	return &layout[T]{columns, list, widths}
}

// header is the line of column names. The one that is sorted by is marked, in the place
// of its last letter where the name fills its column.
func (t *layout[T]) header(d *drawing, o order) string {
	mark := d.down
	if o.reverse {
		mark = d.up
	}
	return t.across(" ", func(i, width int) cell {
		name := t.columns[i].name
		if i != o.column {
			return text(dim, name)
		}
		return text(bold, cut(name, width-1)+mark)
	})
}

// row is the line of one row.
func (t *layout[T]) row(d *drawing, r T, selected bool) string {
	return t.across(mark(selected), func(i, _ int) cell { return t.columns[i].cell(d, r) })
}

// mark stands before a row.
func mark(selected bool) cell {
	if selected {
		return text(bold, ">")
	}
	return plain(" ")
}

// across is a mark and a cell of each column.
func (t *layout[T]) across(mark cell, of func(i, width int) cell) string {
	var b strings.Builder
	b.WriteString(string(mark))
	for k, i := range t.list {
		b.WriteByte(' ')
		b.WriteString(of(i, t.widths[k]).fit(t.widths[k], t.columns[i].at))
	}
	return b.String()
}
