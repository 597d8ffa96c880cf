package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// idsRow is one provider of token ids of one model.
type idsRow struct {
	model string
	at    int // in the order in which the model's providers are asked
	*view.ProviderState
}

// native is the name of the provider that makes ids itself; the others ask engines,
// whose own ids need no comparing.
const native = "native"

// verdict is what is known of the ids of a provider, the worst first.
type verdict int

const (
	differs verdict = iota
	doubtful
	passed
	engines
)

func (r *idsRow) verdict() verdict {
	switch p := r.Parity; {
	case r.Name != native:
		return engines
	case p == nil:
		return doubtful
	case p.State == "failed":
		return differs
	case p.State == "passed":
		return passed
	}
	return doubtful
}

// word says how the ids compare with the engine's.
func (r *idsRow) word() cell {
	switch r.verdict() {
	case differs:
		if at := r.Parity.DiffersAt; at != nil {
			return text(bad, fmt.Sprintf("failed at %d", *at))
		}
		return text(bad, "failed")
	case passed:
		return text(good, "passed")
	case engines:
		return text(dim, "the engine's")
	}
	return text(warn, "not-run")
}

// by is what told so: a probe, all of them, events, or why nothing did.
func (r *idsRow) by() string {
	p := r.Parity
	switch {
	case p == nil:
		return ""
	case p.Probe != "":
		return p.Probe
	case p.State == "passed":
		return out.Plural(p.Compared, "probe")
	}
	return p.Why
}

func (r *idsRow) age() *int64 {
	if r.Parity == nil {
		return nil
	}
	return r.Parity.AgeMs
}

func (r *idsRow) failures() (n uint64) {
	for _, v := range r.Failed {
		n += v
	}
	return n
}

func (r *idsRow) requests() view.ParityRequests {
	if r.Parity == nil {
		return view.ParityRequests{}
	}
	return r.Parity.Requests
}

// idsRows are the providers by model, each in the order in which they are asked. Models
// that are not configured are left out until one is asked about.
func idsRows(s *view.Snapshot) (rows []*idsRow) {
	for i := range s.Tokenizers {
		t := &s.Tokenizers[i]
		asked := t.Model != view.OtherModels
		from := len(rows)
		for k := range t.Providers {
			r := &idsRow{t.Model, k, &t.Providers[k]}
			asked = asked || r.Told > 0 || r.failures() > 0
			rows = append(rows, r)
		}
		if !asked {
			rows = rows[:from]
		}
	}
	return rows
}

// idsColumns is the table of who tells token ids, and whether they are the engines'.
var idsColumns = []column[*idsRow]{
	{name: "MODEL", need: 0, cell: func(_ *drawing, r *idsRow) cell { return plain(r.model) }, less: func(a, b *idsRow) int {
		return cmp.Or(strings.Compare(a.model, b.model), a.at-b.at)
	}},
	{name: "BY", width: 8, need: 2, cell: func(_ *drawing, r *idsRow) cell { return plain(r.Name) }, less: func(a, b *idsRow) int { return strings.Compare(a.Name, b.Name) }},
	{name: "STATE", width: 10, need: 4, cell: func(_ *drawing, r *idsRow) cell { return providerCell(r) }},
	{name: "PARITY", width: 17, need: 1, cell: func(_ *drawing, r *idsRow) cell { return r.word() }, less: func(a, b *idsRow) int { return cmp.Compare(a.verdict(), b.verdict()) }},
	{name: "PROBE", width: 21, need: 5, cell: func(_ *drawing, r *idsRow) cell { return plain(r.by()) }},
	{name: "AGE", width: 4, at: lipgloss.Right, need: 3, cell: func(d *drawing, r *idsRow) cell {
		if r.Parity == nil {
			return ""
		}
		return d.ageCell(r.age(), false)
	}},
	{name: "ENGINE", width: 12, need: 10, cell: func(_ *drawing, r *idsRow) cell {
		if r.Parity == nil {
			return ""
		}
		return plain(r.Parity.Engine)
	}},
	{name: "TOLD", width: 6, at: lipgloss.Right, need: 6, cell: func(_ *drawing, r *idsRow) cell { return plain(count(r.Told)) }, less: func(a, b *idsRow) int {
		return cmp.Compare(b.Told, a.Told)
	}},
	{name: "FAILED", width: 7, at: lipgloss.Right, need: 7, cell: func(_ *drawing, r *idsRow) cell { return faultCell(r.failures()) }, less: func(a, b *idsRow) int {
		return cmp.Compare(b.failures(), a.failures())
	}},
	{name: "EQUAL", width: 6, at: lipgloss.Right, need: 8, cell: func(_ *drawing, r *idsRow) cell { return plain(count(r.requests().Equal)) }},
	{name: "DIFFER", width: 7, at: lipgloss.Right, need: 9, cell: func(_ *drawing, r *idsRow) cell { return faultCell(r.requests().Differs) }, less: func(a, b *idsRow) int {
		return cmp.Compare(b.requests().Differs, a.requests().Differs)
	}},
	{name: "WHY", width: 25, need: 11, cell: func(_ *drawing, r *idsRow) cell { return text(warn, r.Why) }},
	{name: "FILES", width: 30, need: 12, cell: func(_ *drawing, r *idsRow) cell {
		if r.Files == nil {
			return ""
		}
		return plain(r.Files.Source)
	}},
}

func providerCell(r *idsRow) cell {
	switch r.State {
	case "ready":
		return plain(r.State)
	case "untried", "loading":
		return text(dim, r.State)
	}
	return text(warn, r.State)
}

// tokenIDs sums up the models for the head: the worst is told of, by name unless short.
func (s *sheet) tokenIDs(short bool) cell {
	worst := (*idsRow)(nil)
	for _, r := range s.ids {
		if r.verdict() < engines && (worst == nil || r.verdict() < worst.verdict()) {
			worst = r
		}
	}
	switch {
	case worst == nil:
		return ""
	case short || worst.verdict() == passed:
		return head("IDS") + "  " + worst.word()
	}
	return head("IDS") + "  " + worst.word() + plain(" ("+worst.model+")")
}

// tokenIDs says of a pod's model whose ids its prompts are routed by.
func (t *lines) tokenIDs(d *drawing, r *podRow) {
	label := "IDS"
	for _, x := range d.sheet.ids {
		if x.model == r.Model {
			t.provider(d, label, x)
			label = ""
		}
	}
}

// provider is a line about one provider.
func (t *lines) provider(d *drawing, label string, x *idsRow) {
	parts := []cell{plain(x.Name), providerCell(x), text(warn, x.Why), plain(x.Detail), x.word()}
	if p := x.Parity; p != nil {
		parts = append(parts, plain(x.by()))
		if p.Engine != "" {
			parts = append(parts, plain("compared with "+p.Engine+" "+d.ago(p.AgeMs)))
		}
		parts = append(parts, plain(p.Detail))
		if n := p.Skipped; n > 0 {
			parts = append(parts, text(dim, out.Plural(n, "probe")+" could not be compared"))
		}
	}
	t.add(label, append(parts, plain(fmt.Sprintf("told %d, failed %d", x.Told, x.failures())))...)
}

// modelText is all that a frame tells of one model's token ids.
func (m *model) modelText(d *drawing, name string) []string {
	t := &lines{w: m.width}
	t.add("MODEL", text(bold, name))
	label := "IDS"
	for _, x := range m.sheet.ids {
		if x.model != name {
			continue
		}
		t.provider(d, label, x)
		label = ""
		for _, why := range slices.Sorted(maps.Keys(x.Failed)) {
			t.add("", text(warn, fmt.Sprintf("%d %s", x.Failed[why], why)))
		}
		if p := x.Parity; p != nil {
			r := &p.Requests
			t.add("REQUESTS", plain(fmt.Sprintf("by the engines' events: equal %d, differ %d, of something else %d, not known %d", r.Equal, r.Differs, r.Unseen, r.Unknown)))
		}
		if f := x.Files; f != nil {
			t.add("FILES", plain(f.Source), plain(f.Commit), plain(f.Vocabulary), plain("sha256 "+f.SHA256), plain("split "+f.Split), plain(f.Template),
				text(warn, f.NoChat), text(warn, f.Doubt))
		}
	}
	if label != "" {
		t.add(label, text(dim, "nobody tells any in this frame"))
	}
	return t.list
}
