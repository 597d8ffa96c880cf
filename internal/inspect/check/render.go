package check

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

func (c *Command) print(s *out.Streams, r *Report) error {
	switch c.Format {
	case "json", "yaml":
		b, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if b = append(out.JSON(b), '\n'); c.Format == "yaml" {
			if b, err = out.YAML(b); err != nil {
				return err
			}
		}
		_, err = s.Out.Write(b)
		return err
	}
	return r.table(s)
}

// table prints one line per fact, then what does not fit together.
func (r *Report) table(s *out.Streams) error {
	t := &out.Table{Columns: []out.Column{{Name: "RESULT"}, {Name: "POD"}, {Name: "WHAT", Wrap: true}, {Name: "DETAIL", Wrap: true}}}
	add := func(result out.Cell, pod, what, detail string) {
		if pod == "" {
			pod = "-"
		}
		t.AddCells(result, out.Cell{Text: pod}, out.Cell{Text: what}, out.Cell{Text: detail})
	}
	if r.Config != "" {
		add(good, "", "config", fmt.Sprintf("%s: %s, %s", r.Config, out.Plural(r.Pods, "pod"), out.Plural(r.Models, "model")))
	}
	if l := r.Listened; l != nil {
		add(out.Cell{Text: "-"}, "", "listened", l.String())
	}
	for i := 0; i < len(r.Facts); i++ {
		f := r.Facts[i]
		if f.Skipped { // those of one pod for one reason stand on one line
			for ; i+1 < len(r.Facts) && r.Facts[i+1].Skipped && r.Facts[i+1].Pod == f.Pod && r.Facts[i+1].Detail == f.Detail; i++ {
				f.What += ", " + r.Facts[i+1].What
			}
		}
		add(verdict(f), f.Pod, f.What, f.Detail)
	}
	for _, f := range r.Findings {
		add(severity(f.Severity), f.Pod, f.Code, findingText(f))
	}
	return t.Write(s.Out, s)
}

// findingText says what stands in the file, what the engine says, and what to do.
func findingText(f feed.Finding) string {
	var parts []string
	if f.Value != "" {
		parts = append(parts, fmt.Sprintf("%s is %q", f.Field, f.Value))
	}
	if f.Expected != "" {
		parts = append(parts, fmt.Sprintf("the engine says %q", f.Expected))
	}
	text := strings.Join(parts, ", ")
	if text != "" && f.Hint != "" {
		text += ": "
	}
	return text + f.Hint
}

// The words of the column RESULT that count.
const (
	wordFail  = "FAIL"
	wordError = "ERROR"
	wordWarn  = "warn"
)

var good = out.Cell{Text: "ok", Style: out.Good}

func verdict(f feed.Fact) out.Cell {
	switch {
	case f.OK:
		return good
	case f.Skipped:
		return out.Cell{Text: "skip", Style: out.Dim}
	}
	return out.Cell{Text: wordFail, Style: out.Bad}
}

func severity(s feed.Severity) out.Cell {
	switch s {
	case feed.SeverityError:
		return out.Cell{Text: wordError, Style: out.Bad}
	case feed.SeverityWarning:
		return out.Cell{Text: wordWarn, Style: out.Warn}
	}
	return out.Cell{Text: "info"}
}
