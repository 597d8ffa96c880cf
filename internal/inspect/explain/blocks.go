package explain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// filters lists the pods that were left out. Alike ones are told once and then
// counted, since forty pods of another model say no more than one.
func (p *page) filters() {
	t := &out.Table{Indent: "  ", Columns: []out.Column{{Name: "POD"}, {Name: "FILTER"}, {Name: "WHY", Elastic: true}}}
	alike, told := map[verdict]int{}, map[verdict]bool{}
	for _, x := range p.filtered {
		alike[filterText(x)]++
	}
	for _, x := range p.filtered {
		k := filterText(x)
		if p.o.All || alike[k] <= 2 || !told[k] {
			t.AddCells(out.Cell{Text: x.Name}, out.Cell{Text: k.filter, Style: out.Warn}, out.Cell{Text: k.why})
		}
		if n := alike[k] - 1; !p.o.All && n > 1 && !told[k] {
			t.Add(fmt.Sprintf("%d more", n), k.filter, k.why+" (--all lists them)")
		}
		told[k] = true
	}
	if t.Len() > 0 {
		p.block("FILTERED", "", t)
	}
}

// verdict is the name of a pod's filter and what it compared.
type verdict struct{ filter, why string }

func filterText(x *pick.ExplainedPod) verdict {
	f := x.Filter
	if f == nil {
		return verdict{}
	}
	why := deref(f.Why)
	if f.Value != nil && f.Limit != nil && *f.Limit > 0 {
		numbers := fmt.Sprintf("%g over limit %g %s", *f.Value, *f.Limit, deref(f.Unit))
		if why = strings.TrimSpace(numbers); f.Why != nil {
			why += ": " + *f.Why
		}
	}
	return verdict{f.Name, why}
}

// commonest names the filter that left most pods out.
func (p *page) commonest() string {
	count := map[string]int{}
	for _, x := range p.filtered {
		count[filterText(x).filter]++
	}
	best := ""
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if best == "" || count[name] > count[best] {
			best = name
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("most common reason: %s (%d of %s)", best, count[best], out.Plural(len(p.x.Pods), "pod"))
}

// match shows what each scored pod holds of the prompt.
func (p *page) match() {
	if len(p.scored) == 0 {
		return
	}
	t := &out.Table{Indent: "  ", Columns: []out.Column{{Name: "POD"}}}
	tiers := []struct {
		name string
		of   func(m *pick.ExplainedMatch) int
	}{
		{"GPU", func(m *pick.ExplainedMatch) int { return m.GPU }},
		{"HOST", func(m *pick.ExplainedMatch) int { return m.Host }},
		{"DISK", func(m *pick.ExplainedMatch) int { return m.Disk }},
		{"REMOTE", func(m *pick.ExplainedMatch) int { return m.Remote }},
		{"EXPECTED", func(m *pick.ExplainedMatch) int { return m.Expected }},
	}
	used := tiers[:1:1] // GPU always, a slower tier when somebody has it
	for _, tier := range tiers[1:] {
		if p.o.Wide || slices.ContainsFunc(p.scored, func(x *pick.ExplainedPod) bool { return tier.of(&x.Match) > 0 }) {
			used = append(used, tier)
		}
	}
	for _, tier := range used {
		t.Columns = append(t.Columns, out.Column{Name: tier.name, Right: true})
	}
	t.Columns = append(t.Columns, out.Column{Name: "TOTAL", Right: true}, out.Column{Name: "DEPTH"},
		out.Column{Name: "EVENTS", Right: true}, out.Column{Name: "STATE", Elastic: true})
	for _, x := range p.shown() {
		row := []out.Cell{{Text: x.Name}}
		for _, tier := range used {
			row = append(row, out.Cell{Text: fmt.Sprint(tier.of(&x.Match))})
		}
		row = append(row, out.Cell{Text: fmt.Sprint(x.Match.Depth)}, out.Cell{Text: p.depth(x)},
			out.Cell{Text: eventsText(x)}, out.Cell{Text: p.indexText(x), Style: indexStyle(x)})
		t.AddCells(row...)
	}
	p.block("MATCH", "blocks of the prompt, by fastest tier"+p.hidden(), t)
}

// depth draws the cached share of the prompt's tokens.
func (p *page) depth(x *pick.ExplainedPod) string {
	if p.x.Tokens <= 0 {
		return ""
	}
	share := float64(x.Match.Tokens) / float64(p.x.Tokens)
	const bar = 20
	full := portion(share, bar)
	return fmt.Sprintf("%s%s %3d%%", strings.Repeat("#", full), strings.Repeat(".", bar-full), portion(share, 100))
}

// portion rounds a share of n, but to all of n or to nothing only what is so: a
// prompt cached but for its end is not a cached prompt.
func portion(share float64, n int) int {
	switch {
	case share >= 1:
		return n
	case share <= 0:
		return 0
	}
	return min(max(int(share*float64(n)+0.5), 1), n-1)
}

// eventsText is the age of a pod's last event. Blocks without any event are those
// of a replayed history.
func eventsText(x *pick.ExplainedPod) string {
	if x.Age.Events == nil && x.Match.Depth > x.Match.Expected {
		return "replayed"
	}
	return age(x.Age.Events)
}

// whyWidth keeps the error of a socket from widening the table beyond a screen;
// the wide form and JSON have all of it.
const whyWidth = 32

func (p *page) indexText(x *pick.ExplainedPod) string {
	parts := []string{x.IndexState}
	if x.IndexWhy != nil {
		why := *x.IndexWhy
		if !p.o.Wide {
			why = out.Fit(why, whyWidth)
		}
		parts[0] += " (" + why + ")"
	}
	if x.Lost > 0 {
		parts = append(parts, out.Plural(int(min(x.Lost, 1<<30)), "batch")+" lost")
	}
	if x.Reason != nil {
		parts = append(parts, *x.Reason)
	}
	return strings.Join(parts, ", ")
}

func indexStyle(x *pick.ExplainedPod) out.Style {
	if x.IndexState == "synced" {
		return out.Plain
	}
	return out.Warn
}

// termHeads are the column heads of the terms with long names.
var termHeads = map[string]string{"concurrency": "CONC", "utilisation": "UTIL", "hardware": "HW"}

// scores shows every term of every candidate, best first.
func (p *page) scores() {
	if len(p.scored) == 0 {
		return
	}
	t := &out.Table{Indent: " ", Columns: []out.Column{{Name: " POD"}, {Name: "TOTAL", Right: true}}}
	for _, term := range p.scored[0].Terms {
		head := termHeads[term.Name]
		if head == "" {
			head = strings.ToUpper(out.Clean(term.Name))
		}
		t.Columns = append(t.Columns, out.Column{Name: head, Right: true})
	}
	t.Columns = append(t.Columns, out.Column{Name: "AGE", Right: true})
	for _, x := range p.shown() {
		mark, style := " ", out.Plain
		if p.x.Pick.Pod != nil && x.Name == *p.x.Pick.Pod {
			mark, style = ">", out.Good
		}
		row := []out.Cell{{Text: mark + x.Name, Style: style}, {Text: seconds(*x.Total), Style: style}}
		for i := range p.scored[0].Terms {
			text := "?"
			if i < len(x.Terms) {
				text = seconds(x.Terms[i].Seconds)
			}
			row = append(row, out.Cell{Text: text})
		}
		stale := age(x.Age.Metrics)
		ageStyle := out.Plain
		if x.Telemetry != "fresh" {
			stale, ageStyle = "!"+stale, out.Warn
		}
		t.AddCells(append(row, out.Cell{Text: stale, Style: ageStyle})...)
	}
	p.block("SCORES", "seconds; the score is the sum of the terms, the highest wins"+p.hidden(), t)
}

// inputs lists what each term was computed from, in the wide form.
func (p *page) inputs() {
	if !p.o.Wide || len(p.scored) == 0 {
		return
	}
	t := &out.Table{Indent: "  ", Columns: []out.Column{{Name: "POD"}, {Name: "TERM"}, {Name: "SECONDS", Right: true}, {Name: "INPUTS"}}}
	for _, x := range p.shown() {
		for _, term := range x.Terms {
			var in []string
			for _, k := range slices.Sorted(maps.Keys(term.Inputs)) {
				in = append(in, k+"="+inputText(term.Inputs[k]))
			}
			t.Add(x.Name, term.Name, seconds(term.Seconds), strings.Join(in, " "))
		}
	}
	p.block("INPUTS", "raw values behind each term", t)
}

// inputText writes an input as JSON does, so that text and number differ.
func inputText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(b)
}

// shown is the part of the candidates that fits one screen.
func (p *page) shown() []*pick.ExplainedPod {
	if p.o.All || len(p.scored) <= maxRows {
		return p.scored
	}
	return p.scored[:maxRows]
}

func (p *page) hidden() string {
	if n := len(p.scored) - len(p.shown()); n > 0 {
		return fmt.Sprintf("; %d more (--all lists them)", n)
	}
	return ""
}
