package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// filters lists the pods that were left out. Alike ones are told once and then
// counted, since forty pods of another model say no more than one.
func (p *page) filters() {
	t := &out.Table{Indent: "  ", Columns: []out.Column{{Name: "POD"}, {Name: "FILTER"}, {Name: "AGE", Right: true}, {Name: "WHY", Wrap: true}}}
	alike, told := map[verdict]int{}, map[verdict]bool{}
	for _, x := range p.filtered {
		alike[filterText(x)]++
	}
	for _, x := range p.filtered {
		k := filterText(x)
		if p.o.All || alike[k] <= 2 || !told[k] {
			t.AddCells(out.Cell{Text: x.Name}, out.Cell{Text: k.filter, Style: out.Warn}, out.Cell{Text: filterAge(x)}, out.Cell{Text: k.why})
		}
		if n := alike[k] - 1; !p.o.All && n > 1 && !told[k] {
			t.Add(fmt.Sprintf("%d more", n), k.filter, "", k.why+" (--all lists them)")
		}
		told[k] = true
	}
	if t.Len() > 0 {
		p.block("FILTERED", "", t)
	}
}

// filterAge is how old the numbers are that a filter compared; those of the
// configuration have no age.
func filterAge(x *pick.ExplainedPod) string {
	if x.Age.Metrics == nil {
		return "-"
	}
	return age(x.Age.Metrics)
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
func commonest(x *pick.Explanation) string {
	count := map[string]int{}
	for i := range x.Pods {
		if f := x.Pods[i].Filter; f != nil {
			count[f.Name]++
		}
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
	return fmt.Sprintf("%s left out %d of %s", best, count[best], out.Plural(len(x.Pods), "pod"))
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
	t.Columns = append(t.Columns, out.Column{Name: "TOTAL", Right: true})
	sizes := p.differentSizes()
	if sizes {
		t.Columns = append(t.Columns, out.Column{Name: "SIZE", Right: true})
	}
	t.Columns = append(t.Columns, out.Column{Name: "CACHED TOKENS"},
		out.Column{Name: "EVENTS", Right: true}, out.Column{Name: "STATE", Elastic: !p.o.Wide, Wrap: p.o.Wide})
	for _, x := range p.shown() {
		row := []out.Cell{{Text: x.Name}}
		for _, tier := range used {
			row = append(row, out.Cell{Text: fmt.Sprint(tier.of(&x.Match))})
		}
		row = append(row, out.Cell{Text: fmt.Sprint(x.Match.Depth)})
		if sizes {
			row = append(row, out.Cell{Text: sizeText(x.Match.Size)})
		}
		row = append(row, out.Cell{Text: p.depth(x)},
			out.Cell{Text: eventsText(x)}, out.Cell{Text: p.indexText(x), Style: indexStyle(x)})
		t.AddCells(row...)
	}
	p.block("MATCH", "blocks of the prompt, by fastest tier"+p.hidden(), t)
}

// differentSizes reports that the pods' blocks are not of one size, so that their
// numbers cannot be compared.
func (p *page) differentSizes() bool {
	first := 0
	for _, x := range p.scored {
		if size := x.Match.Size; size != nil {
			if first != 0 && *size != first {
				return true
			}
			first = *size
		}
	}
	return false
}

func sizeText(size *int) string {
	if size == nil {
		return "-"
	}
	return fmt.Sprint(*size)
}

// depth draws the cached share of the prompt's tokens, and counts them.
func (p *page) depth(x *pick.ExplainedPod) string {
	if p.x.Tokens <= 0 {
		return ""
	}
	const bar = 10
	full := portion(float64(x.Match.Tokens)/float64(p.x.Tokens), bar)
	fill, about := "#", ""
	if x.Match.Approximate { // sent there before: no event says that it is cached
		fill, about = "~", "about "
	}
	return fmt.Sprintf("%s%s %s%d/%d", strings.Repeat(fill, full), strings.Repeat(".", bar-full), about, x.Match.Tokens, p.x.Tokens)
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

// whyWidth keeps the error of a socket from widening the table beyond a screen; the
// wide form, a pipe and JSON have all of it.
const whyWidth = 32

// indexText is the state of a pod's event stream, for how long, and why.
func (p *page) indexText(x *pick.ExplainedPod) string {
	parts := []string{view.SyncLabel(x.IndexState, x.Missing)}
	if x.IndexWhy != nil {
		why := *x.IndexWhy
		if x.IndexDetail != nil {
			why += ": " + *x.IndexDetail
		}
		if p.s.OutTTY && !p.o.Wide {
			why = out.Fit(why, whyWidth)
		}
		if x.Age.IndexState != nil {
			parts[0] += " for " + age(x.Age.IndexState)
		}
		parts[0] += " (" + why + ")"
	}
	if x.Lost > 0 {
		parts = append(parts, out.Plural(int(min(x.Lost, 1<<30)), "batch")+" lost")
	}
	if x.Reason != nil {
		parts = append(parts, *x.Reason)
		if x.Age.Cleared != nil {
			parts[len(parts)-1] += " " + age(x.Age.Cleared) + " ago"
		}
	}
	return strings.Join(parts, ", ")
}

func indexStyle(x *pick.ExplainedPod) out.Style {
	if x.IndexState == view.Live.String() {
		return out.Plain
	}
	return out.Warn
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
