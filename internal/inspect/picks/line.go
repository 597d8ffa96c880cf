package picks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// printer writes a line per decision.
type printer struct {
	json    bool
	streams *out.Streams
	begun   bool
}

func newPrinter(format string, s *out.Streams) *printer {
	return &printer{json: format == "jsonl", streams: s}
}

type column struct {
	name        string
	width, need int
	right       bool
}

// columns of the table; names that are longer move the rest of their line. A terminal
// shows as many as it has room for, those of the least need first.
var columns = []column{
	{name: "TIME", width: timeOnPipe, need: 0}, {name: "POD", width: 16, need: 1}, {name: "TOKENS", width: 7, need: 4, right: true},
	{name: "HIT%", width: 5, need: 3, right: true}, {name: "SCORE s", width: 8, need: 6, right: true}, {name: "MARGIN", width: 8, need: 7, right: true},
	{name: "RUNNER-UP", width: 16, need: 8}, {name: "REASON", width: 22, need: 5}, {name: "MODEL", width: 24, need: 9},
	{name: "REQUEST", width: 36, need: 2}, // by which explain is asked for the rest
}

// pick writes what serve wrote, or its line.
func (w *printer) pick(raw json.RawMessage, p *view.RecentPick) error {
	if w.json {
		return w.line(string(out.JSON(raw)))
	}
	if err := w.header(); err != nil {
		return err
	}
	hit := "-"
	if p.Tokens > 0 {
		hit = out.Percent(float64(p.Cached) / float64(p.Tokens))
	}
	margin := seconds(p.Margin)
	if p.Tie {
		margin = "tie"
	}
	at := w.time(p.At)
	return w.row(at, cmp.Or(text(p.Pod), p.Outcome), fmt.Sprint(p.Tokens), hit, seconds(p.Score), margin,
		cmp.Or(text(p.RunnerUp), "-"), cmp.Or(text(p.Reason), "-"), p.Model, p.RequestID)
}

// notice writes a row of our own, in capitals where decisions have a pod.
func (w *printer) notice(word string, count int) error {
	if w.json {
		b, err := json.Marshal(struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Notice     string `json:"notice"`
			Count      int    `json:"count"`
		}{"eppctl/v1", "Notice", word, count})
		if err != nil {
			return err
		}
		return w.line(string(b))
	}
	if err := w.header(); err != nil {
		return err
	}
	said := "serve was started anew: what the one before decided last is not known"
	if word == "missed" {
		said = out.Plural(count, "decision") + " came and left before they were asked for"
	}
	return w.line(fmt.Sprintf("%-*s  %-16s  %s", w.timeWidth(), "-", strings.ToUpper(word), said))
}

func (w *printer) header() error {
	if w.begun {
		return nil
	}
	w.begun = true
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = columns[i].name
	}
	return w.row(names...)
}

func (w *printer) row(cells ...string) error {
	var parts []string
	for i, shown := range w.shown() {
		if !shown {
			continue
		}
		s := out.Clean(cells[i])
		blanks := strings.Repeat(" ", max(w.widthOf(i)-out.Cells(s), 0))
		if columns[i].right {
			s = blanks + s
		} else {
			s += blanks
		}
		parts = append(parts, s)
	}
	return w.line(strings.Join(parts, gap))
}

const gap = "  "

// shown tells which columns there is room for.
func (w *printer) shown() []bool {
	list, room := make([]bool, len(columns)), math.MaxInt
	if w.streams.OutTTY && w.streams.Width > 0 {
		room = w.streams.Width + len(gap)
	}
	for need := range columns {
		i := slices.IndexFunc(columns, func(c column) bool { return c.need == need })
		if takes := w.widthOf(i) + len(gap); takes <= room {
			list[i], room = true, room-takes
		}
	}
	return list
}

func (w *printer) widthOf(i int) int {
	if i == 0 {
		return w.timeWidth()
	}
	return columns[i].width
}

// line is cut where a terminal ends; on a pipe it is whole.
func (w *printer) line(text string) error {
	text = strings.TrimRight(text, " ")
	if w.streams.OutTTY && !w.json && w.streams.Width > 0 {
		text = out.Fit(text, w.streams.Width)
	}
	_, err := fmt.Fprintln(w.streams.Out, text)
	return err
}

const (
	clock      = "15:04:05.000" // on a terminal
	timeOnPipe = len(time.RFC3339Nano)
)

func (w *printer) timeWidth() int {
	if w.streams.OutTTY {
		return len(clock)
	}
	return timeOnPipe
}

func (w *printer) time(at string) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil || !w.streams.OutTTY {
		return at
	}
	return t.Local().Format(clock)
}

func seconds(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%+.3f", *v)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
