package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var text string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"seconds": seconds,
	"percent": func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) },
	"round":   func(v float64) string { return fmt.Sprintf("%.1f", v) },
	"best":    func(r *Report, i int) bool { return r.best(&r.Runs[i]) },
}).Parse(text))

// target is the time to first token at p90 by which loads are compared.
const target = 5

// Write writes the report.
func Write(w io.Writer, r *Report) error {
	data := struct {
		*Report
		Charts []chart
		Limits []limitRow
	}{Report: r}
	if len(r.speeds()) > 1 {
		data.Charts = []chart{
			r.chart("Mean time to first token", 0, func(x *Run) float64 { return x.Mean }),
			r.chart("Time to first token at p90", target, func(x *Run) float64 { return x.P90 }),
		}
		data.Limits = r.limits()
	}
	return pageTemplate.Execute(w, data)
}

// limitRow is the highest speed at which a policy kept the target.
type limitRow struct {
	Policy string
	Speed  float64
	All    bool // it kept it at every speed that was run
	None   bool
}

func (r *Report) limits() (rows []limitRow) {
	for _, name := range r.policies() {
		row := limitRow{Policy: name, All: true, None: true}
		for i := range r.Runs {
			x := &r.Runs[i]
			if x.Policy != name {
				continue
			}
			if x.P90 <= target {
				row.None, row.Speed = false, max(row.Speed, x.Speed)
			} else {
				row.All = false
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// best reports whether no other run at this speed has a lower mean.
func (r *Report) best(x *Run) bool {
	for i := range r.Runs {
		if y := &r.Runs[i]; y.Speed == x.Speed && y.Mean < x.Mean {
			return false
		}
	}
	return true
}
