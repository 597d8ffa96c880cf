package explain

import (
	"fmt"
	"slices"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// whatIf shows what the decision would have been beside what it is: what was
// supposed, who wins before and after, and the terms that moved.
func (p *page) whatIf() {
	w := p.x.WhatIf
	if w == nil {
		return
	}
	for i := range w.Overrides {
		label := ""
		if i == 0 {
			label = "IF"
		}
		p.line(label, overrideText(&w.Overrides[i]))
	}
	then := outcomeText(&p.x.Pick) + " -> " + outcomeText(&w.Pick)
	if outcomeText(&p.x.Pick) == outcomeText(&w.Pick) {
		then = outcomeText(&w.Pick) + " stays"
	}
	p.line("THEN", then, marginText(&w.Pick), deref(w.Pick.Why))
	p.moved(w)
}

func overrideText(o *pick.ExplainedOverride) string {
	now, value, to := "?", "", 0.0
	if o.Now != nil {
		now = amount(*o.Now)
	}
	if o.Value != nil {
		value, to = amount(*o.Value), *o.Value
	}
	switch o.Kind {
	case "input":
		return fmt.Sprintf("%s of %s %s -> %s%s", deref(o.Field), deref(o.Pod), now, value, unitOf(o.Unit, to))
	case "weight":
		return fmt.Sprintf("weight %s %s -> %s", deref(o.Field), now, value)
	}
	return "without " + deref(o.Pod)
}

// outcomeText is the pod, or what became of the request without one.
func outcomeText(k *pick.ExplainedPick) string {
	if k.Pod == nil {
		return "none (" + k.Outcome + ")"
	}
	return *k.Pod
}

// marginText is how far the pod picked is ahead. In a tie it may be behind, since the
// hash chose.
func marginText(k *pick.ExplainedPick) string {
	switch {
	case k.Margin == nil || k.RunnerUp == nil:
		return ""
	case k.Tie.Used:
		return fmt.Sprintf("tie with %s (%s s)", *k.RunnerUp, seconds(*k.Margin))
	}
	return fmt.Sprintf("%s s over %s", seconds(*k.Margin), *k.RunnerUp)
}

// moved lists the terms that are others than before, those that moved most first
// within each pod, and pods that came in or fell out.
func (p *page) moved(w *pick.ExplainedWhatIf) {
	t := &out.Table{Indent: "  ", Columns: []out.Column{
		{Name: "POD"}, {Name: "TERM"}, {Name: "NOW", Right: true}, {Name: "IF", Right: true}, {Name: "MOVED", Right: true},
	}}
	pods := p.x.Pods
	shown := 0
	for i := range pods {
		before, after := &pods[i], podOf(w.Pods, pods[i].Name)
		if after == nil || before.Verdict != after.Verdict {
			t.Add(before.Name, "verdict", verdictText(before), verdictText(after))
			continue
		}
		if before.Total == nil || after.Total == nil || *before.Total == *after.Total && !movesOf(w, before.Name) {
			continue
		}
		if shown++; shown > maxRows && !p.o.All {
			continue
		}
		for _, m := range w.Moved {
			if m.Pod == before.Name && (p.o.Wide || visible(m.To-m.From)) {
				t.Add(m.Pod, m.Term, seconds(m.From), seconds(m.To), seconds(m.To-m.From))
			}
		}
		t.Add(before.Name, "total", seconds(*before.Total), seconds(*after.Total), seconds(*after.Total-*before.Total))
	}
	if t.Len() == 0 {
		p.line("", "no term moves")
		return
	}
	note := "terms that are others, in seconds"
	if n := shown - maxRows; n > 0 && !p.o.All {
		note += fmt.Sprintf("; %s more (--all lists them)", out.Plural(n, "pod"))
	}
	p.block("MOVED", note, t)
}

func movesOf(w *pick.ExplainedWhatIf, name string) bool {
	return slices.ContainsFunc(w.Moved, func(m pick.ExplainedMove) bool { return m.Pod == name })
}

func podOf(list []pick.ExplainedPod, name string) *pick.ExplainedPod {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

func verdictText(x *pick.ExplainedPod) string {
	switch {
	case x == nil:
		return "gone"
	case x.Filter != nil:
		return x.Filter.Name
	}
	return x.Verdict
}
