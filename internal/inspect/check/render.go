package check

import (
	"encoding/json"
	"fmt"

	"github.com/goccy/go-yaml"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

func (c *Command) print(s *out.Streams, r *Report) error {
	switch c.Format {
	case "json":
		enc := json.NewEncoder(s.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	case "yaml":
		b, err := json.Marshal(r)
		if err == nil {
			b, err = yaml.JSONToYAML(b)
		}
		if err != nil {
			return err
		}
		_, err = s.Out.Write(b)
		return err
	}
	return r.table(s)
}

// table prints one line per fact, then what does not fit together.
func (r *Report) table(s *out.Streams) error {
	t := &out.Table{Columns: []out.Column{{Name: "RESULT"}, {Name: "POD"}, {Name: "WHAT"}, {Name: "DETAIL", Elastic: true}}}
	t.AddCells(verdict(true), out.Cell{Text: "-"}, out.Cell{Text: "config"}, out.Cell{Text: fmt.Sprintf("%s: %d pods", r.Config, r.Pods)})
	for _, f := range r.Facts {
		t.AddCells(verdict(f.OK), out.Cell{Text: f.Pod}, out.Cell{Text: f.What}, out.Cell{Text: f.Detail})
	}
	for _, f := range r.Findings {
		pod, text := f.Pod, f.Hint
		if pod == "" {
			pod = "-"
		}
		if f.Field != "" {
			text = fmt.Sprintf("%s is %q, the engine says %q", f.Field, f.Value, f.Expected)
			if f.Hint != "" {
				text += ": " + f.Hint
			}
		}
		t.AddCells(severity(f.Severity), out.Cell{Text: pod}, out.Cell{Text: f.Code}, out.Cell{Text: text})
	}
	return t.Write(s.Out, s)
}

func verdict(ok bool) out.Cell {
	if ok {
		return out.Cell{Text: "ok", Style: out.Good}
	}
	return out.Cell{Text: "FAIL", Style: out.Bad}
}

func severity(s feed.Severity) out.Cell {
	switch s {
	case feed.SeverityError:
		return out.Cell{Text: "ERROR", Style: out.Bad}
	case feed.SeverityWarning:
		return out.Cell{Text: "warn", Style: out.Warn}
	}
	return out.Cell{Text: "info"}
}
