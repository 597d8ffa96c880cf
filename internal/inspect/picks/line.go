package picks

import (
	"cmp"
	"encoding/json"
	"fmt"
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

// columns of the table; names that are longer move the rest of their line.
const columns = "%-*s  %-16s  %7s  %5s  %8s  %8s  %-16s  %-22s  %-24s  %s"

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
		hit = fmt.Sprintf("%.0f%%", 100*float64(p.Cached)/float64(p.Tokens))
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
	return w.row("TIME", "POD", "TOKENS", "HIT", "SCORE s", "MARGIN", "RUNNER-UP", "REASON", "MODEL", "REQUEST")
}

func (w *printer) row(at string, cells ...any) error {
	for i := range cells {
		cells[i] = out.Clean(cells[i].(string))
	}
	return w.line(fmt.Sprintf(columns, append([]any{w.timeWidth(), at}, cells...)...))
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
