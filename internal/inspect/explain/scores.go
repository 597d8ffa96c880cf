package explain

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// termHeads are the column heads of the terms with long names.
var termHeads = map[string]string{"concurrency": "CONC", "utilisation": "UTIL", "hardware": "HW"}

// scores shows every term of every candidate, best first.
func (p *page) scores() {
	if len(p.scored) == 0 {
		return
	}
	t := &out.Table{Indent: " ", Columns: []out.Column{{Name: " POD"}, {Name: "TOTAL", Right: true}}}
	used, nothing := p.usedTerms()
	for _, i := range used {
		t.Columns = append(t.Columns, out.Column{Name: termHead(p.scored[0].Terms[i].Name), Right: true})
	}
	t.Columns = append(t.Columns, out.Column{Name: "AGE", Right: true})
	for _, x := range p.shown() {
		mark, style := " ", out.Plain
		if p.x.Pick.Pod != nil && x.Name == *p.x.Pick.Pod {
			mark, style = ">", out.Good
		}
		row := []out.Cell{{Text: mark + x.Name, Style: style}, {Text: seconds(*x.Total), Style: style}}
		for _, i := range used {
			text := "?"
			if i < len(x.Terms) {
				text = termText(&x.Terms[i])
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
	p.nothing(nothing)
}

func termHead(name string) string {
	if head := termHeads[name]; head != "" {
		return head
	}
	return strings.ToUpper(out.Clean(name))
}

// termText is a term's seconds. One that is 0 says why: nothing there, or nothing
// known.
func termText(x *pick.ExplainedTerm) string {
	if x.Seconds == 0 && x.Zero != nil {
		return "0 " + *x.Zero
	}
	return seconds(x.Seconds)
}

// visible reports whether an amount is more than 0 to the millisecond.
func visible(seconds float64) bool { return math.Abs(seconds) >= 0.0005 }

// usedTerms are the terms that are something on a pod, and those that are nothing on
// any, which take no column: the wide form has all.
func (p *page) usedTerms() (used, nothing []int) {
	for i := range p.scored[0].Terms {
		if p.o.Wide || slices.ContainsFunc(p.scored, func(x *pick.ExplainedPod) bool { return i < len(x.Terms) && visible(x.Terms[i].Seconds) }) {
			used = append(used, i)
		} else {
			nothing = append(nothing, i)
		}
	}
	return used, nothing
}

// nothing names the terms that are 0 on every pod, by the reasons for it.
func (p *page) nothing(list []int) {
	byReason := map[string][]string{}
	for _, i := range list {
		var reasons []string
		for _, x := range p.scored {
			if i < len(x.Terms) {
				why := deref(x.Terms[i].Zero)
				if x.Terms[i].Seconds != 0 {
					why = "below 0.001"
				}
				reasons = append(reasons, why)
			}
		}
		slices.Sort(reasons)
		why := strings.Join(slices.Compact(reasons), ", ")
		byReason[why] = append(byReason[why], strings.ToLower(termHead(p.scored[0].Terms[i].Name)))
	}
	if len(list) == 0 {
		return
	}
	var groups []string
	for _, why := range slices.Sorted(maps.Keys(byReason)) {
		group := strings.Join(byReason[why], ", ")
		if why != "" {
			group += " (" + out.Clean(why) + ")"
		}
		groups = append(groups, group)
	}
	text := "0 on every pod: " + strings.Join(groups, "; ")
	indent := "  "
	for _, line := range p.lines(text, 2*len(indent)) {
		p.write(indent + line + "\n")
		indent = "    "
	}
}

// inputs lists what each term was computed from, in the wide form.
func (p *page) inputs() {
	if !p.o.Wide || len(p.scored) == 0 {
		return
	}
	t := &out.Table{Indent: "  ", Columns: []out.Column{{Name: "POD"}, {Name: "TERM"}, {Name: "SECONDS", Right: true}, {Name: "ZERO"}, {Name: "INPUTS", Wrap: true}}}
	for _, x := range p.shown() {
		for _, term := range x.Terms {
			var in []string
			for _, k := range slices.Sorted(maps.Keys(term.Inputs)) {
				in = append(in, k+"="+inputText(term.Inputs[k]))
			}
			t.Add(x.Name, term.Name, seconds(term.Seconds), deref(term.Zero), strings.Join(in, " "))
		}
	}
	p.block("INPUTS", "raw values behind each term", t)
}

// inputDigits is how many digits of a fraction are shown. JSON has them all.
const inputDigits = 6

// inputText writes an input as JSON does, so that text and number differ.
func inputText(v any) string {
	if f, ok := v.(float64); ok && f != math.Trunc(f) {
		return strconv.FormatFloat(f, 'g', inputDigits, 64)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(b)
}
