package tap

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// printer writes what is to be shown. One goroutine calls it.
type printer interface {
	// event prints one event of a message.
	event(e *Entry, ev *event.Event)
	// message is called behind the events of a message of which any was shown, or
	// which could not be read.
	message(e *Entry)
	// notice prints a row of our own.
	notice(n *Notice)
	// close ends the output.
	close()
}

// lines is the compact form: one line per event.
type lines struct {
	w          io.Writer
	s          *out.Streams
	wide       bool
	engineTime bool
	header     bool // still to come
	podWidth   int
	hidden     int // columns that the terminal has no room for, as told
	raw        bool
	row        []out.Cell
}

// The widths of the columns, which a stream has to fix beforehand; longer values
// push their line apart.
const (
	clockWidth  = 12 // 11:42:07.318
	stampWidth  = 30 // 2026-11-29T11:42:07.318000000Z
	shortHash   = 8
	fullHash    = 16
	engineWidth = 6
	seqWidth    = 7
	eventWidth  = 8
	tierWidth   = 6
	countWidth  = 6
	lagWidth    = 7
)

type column struct {
	name  string
	width int
	right bool
}

func (l *lines) columns() []column {
	when, hash := stampWidth, fullHash
	if l.s.OutTTY {
		when, hash = clockWidth, shortHash
	}
	list := []column{
		{"TIME", when, false}, {"POD", max(l.podWidth, 3), false}, {"ENGINE", engineWidth, false}, {"SEQ", seqWidth, false},
		{"EVENT", eventWidth, false}, {"TIER", tierWidth, false}, {"BLOCKS", countWidth, true},
		{"PARENT", hash, false}, {"FIRST", hash, false}, {"TOKENS", countWidth, true}, {"LAG", lagWidth, true},
	}
	if l.wide {
		list = append(list,
			column{"LORA", 8, false}, column{"GROUP", 5, true}, column{"KIND", 14, false}, column{"BLKSZ", 5, true},
			column{"SALT", 8, false}, column{"MEDIUM", 10, false}, column{"LAYOUT", 18, false}, column{"TOPIC", 0, false})
	}
	return list
}

func (l *lines) event(e *Entry, ev *event.Event) {
	lag := out.Cell{Text: "-"}
	if ns, ok := e.lag(); ok {
		lag.Text = micros(ns / 1000)
		if skewed(ns) {
			lag = out.Cell{Text: fmt.Sprintf("%.1fs!", float64(ns)/1e9), Style: out.Warn}
		}
	}
	parent, first := "-", "-"
	if ev.HasParent {
		parent = l.hash(ev.Parent)
	}
	if len(ev.Hashes) > 0 {
		first = l.hash(ev.Hashes[0])
	}
	row := append(l.begin(l.when(e), e, ev.Kind.String(), out.Plain),
		out.Cell{Text: tierName(ev)}, out.Cell{Text: dash(len(ev.Hashes))}, out.Cell{Text: parent}, out.Cell{Text: first},
		out.Cell{Text: dash(len(ev.Tokens))}, lag)
	if l.wide {
		kind := ev.SpecKind
		if kind == "" {
			kind = "-"
		}
		for _, text := range []string{
			loraText(ev), strconv.Itoa(ev.Group), kind, dash(ev.BlockSize), text(ev.Salt), text(ev.Medium), text(ev.Layout), text(e.Topic),
		} {
			row = append(row, out.Cell{Text: text})
		}
	}
	l.print(row, "")
}

// loraText is an adapter's name and the number that some engines give besides, or
// alone.
func loraText(ev *event.Event) string {
	if ev.LoRAID < 0 {
		return text(ev.LoRA)
	}
	return strings.TrimSpace(fmt.Sprintf("%s #%d", ev.LoRA, ev.LoRAID))
}

// notice prints what happened in words, from the column of numbers on.
func (l *lines) notice(n *Notice) {
	seq := "-"
	if n.Seq != nil {
		seq = strconv.FormatUint(*n.Seq, 10)
	}
	counted := "-"
	if n.Count > 0 {
		counted = strconv.FormatUint(n.Count, 10)
	}
	style := out.Warn
	if n.Notice == unknownEvent {
		style = out.Plain
	} else if n.Notice == recording.Up || n.Notice == recording.Replay && n.outcome() == replayFilled {
		style = out.Good
	}
	l.print(append(l.begin(l.clock(n.at), nil, "", out.Plain)[:1],
		out.Cell{Text: n.name()}, out.Cell{Text: n.engine()}, out.Cell{Text: seq}, out.Cell{Text: strings.ToUpper(n.Notice), Style: style},
		out.Cell{Text: "-"}, out.Cell{Text: counted}), n.text())
}

func (l *lines) begin(when string, e *Entry, kind string, style out.Style) []out.Cell {
	l.row = append(l.row[:0], out.Cell{Text: when, Style: out.Dim})
	if e == nil {
		return l.row
	}
	return append(l.row,
		out.Cell{Text: podName(e.Pod)}, out.Cell{Text: engineName(e.Pod)}, out.Cell{Text: strconv.FormatUint(e.Seq, 10)}, out.Cell{Text: kind, Style: style})
}

// print writes a row, with text behind it.
func (l *lines) print(row []out.Cell, text string) {
	l.podWidth = max(l.podWidth, out.Cells(out.Clean(row[1].Text)))
	columns := l.columns()
	if l.header {
		l.header = false
		names := make([]out.Cell, len(columns))
		for i, c := range columns {
			names[i] = out.Cell{Text: c.name, Style: out.Dim}
		}
		l.line(l.fitting(columns), names)
	}
	if text != "" {
		l.worded(columns[:len(row)], row, text)
		return
	}
	l.line(l.fitting(columns), row)
}

// fitting leaves out the columns that the terminal has no room for, and says so.
func (l *lines) fitting(columns []column) []column {
	n, used := 0, 0
	for n < len(columns) && used+max(columns[n].width, leastLast) <= l.room() {
		used += columns[n].width + len(between)
		n++
	}
	if hidden := len(columns) - n; hidden > l.hidden {
		l.hidden = hidden
		var names []string
		for _, c := range columns[n:] {
			names = append(names, c.name)
		}
		fmt.Fprintf(l.s.Err, "tap: %d columns have no room for %s: a wider terminal, a pipe or -o jsonl has them\n", l.s.Width, strings.Join(names, ", "))
	}
	return columns[:n]
}

// leastLast is what the last column needs, whose width is not fixed.
const leastLast = 5

// worded writes a row with text behind it, or below where there is no room.
func (l *lines) worded(columns []column, row []out.Cell, text string) {
	text = out.Clean(text)
	used := 0
	for i, c := range row {
		used += max(columns[i].width, out.Cells(out.Clean(c.Text))) + len(between)
	}
	if used+out.Cells(text) <= l.room() {
		l.line(append(columns, column{}), append(row, out.Cell{Text: text}))
		return
	}
	l.line(columns, row)
	indent := strings.Repeat(" ", columns[0].width+len(between))
	for _, part := range out.Wrap(text, max(l.room()-len(indent), leastText)) {
		_, _ = io.WriteString(l.w, out.Fit(indent+part, l.room())+"\n") // gathers, never fails
	}
}

// leastText is a width at which text can still be read.
const leastText = 20

// room is the width that a line may have.
func (l *lines) room() int {
	if l.s.OutTTY && l.s.Width > 0 {
		return l.s.Width
	}
	return math.MaxInt32
}

// between stands between two columns.
const between = "  "

// line writes cells under columns, cut at the terminal's width.
func (l *lines) line(columns []column, cells []out.Cell) {
	var b strings.Builder
	left, blanks := l.room(), 0
	for i, c := range cells[:min(len(cells), len(columns))] {
		text := out.Clean(c.Text)
		fill := max(columns[i].width-out.Cells(text), 0)
		if columns[i].right {
			blanks, fill = blanks+fill, 0
		}
		if text = out.Fit(text, left-blanks); text != "" {
			b.WriteString(strings.Repeat(" ", blanks))
			b.WriteString(l.s.Paint(c.Style, text))
			left, blanks = left-blanks-out.Cells(text), 0
		}
		blanks += fill + len(between)
	}
	b.WriteByte('\n')
	_, _ = io.WriteString(l.w, b.String()) // gathers, never fails
}

func (l *lines) when(e *Entry) string {
	if l.engineTime && e.Batch != nil && e.Batch.At > 0 {
		return l.clock(int64(e.Batch.At * 1e9))
	}
	return l.clock(e.At)
}

func (l *lines) clock(ns int64) string {
	t := time.Unix(0, ns)
	if l.s.OutTTY {
		return t.Format("15:04:05.000")
	}
	return stamp(ns)
}

// stamp writes a time as the JSON contract has it.
func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000000Z") }

func (l *lines) hash(h uint64) string {
	if l.s.OutTTY {
		return hexHash(h)[:shortHash]
	}
	return hexHash(h)
}

func dash(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func text(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (l *lines) message(e *Entry) {
	if l.raw {
		writeRaw(l.w, e)
	}
}

func (l *lines) close() {}
