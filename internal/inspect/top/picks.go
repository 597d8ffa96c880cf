package top

import (
	"cmp"
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/eppctl/eppctl/internal/core/view"
)

// pickColumns is the table of recent decisions. The order they come in is the
// newest first.
var pickColumns = []column[*view.RecentPick]{
	{name: "TIME", width: 8, need: 1, cell: func(d *drawing, p *view.RecentPick) cell { return plain(clock(p.At, d.zone)) }, less: func(a, b *view.RecentPick) int {
		return strings.Compare(b.At, a.At)
	}},
	{name: "POD", width: 14, need: 2, cell: func(_ *drawing, p *view.RecentPick) cell {
		if p.Pod == nil {
			return text(bad, p.Outcome)
		}
		return plain(*p.Pod)
	}, less: func(a, b *view.RecentPick) int { return strings.Compare(deref(a.Pod), deref(b.Pod)) }},
	{name: "SCORE s", width: 8, at: lipgloss.Right, need: 5, cell: func(_ *drawing, p *view.RecentPick) cell { return signed(p.Score) }},
	{name: "MARGIN", width: 8, at: lipgloss.Right, need: 6, cell: func(_ *drawing, p *view.RecentPick) cell {
		if p.Tie {
			return text(dim, "tie")
		}
		return signed(p.Margin)
	}, less: func(a, b *view.RecentPick) int { return cmp.Compare(margin(a), margin(b)) }},
	{name: "RUNNER-UP", width: 14, need: 8, cell: func(_ *drawing, p *view.RecentPick) cell { return plain(deref(p.RunnerUp)) }},
	{name: "TOKENS", width: 6, at: lipgloss.Right, need: 4, cell: func(_ *drawing, p *view.RecentPick) cell { return plain(whole(p.Tokens)) }, less: func(a, b *view.RecentPick) int {
		return cmp.Compare(b.Tokens, a.Tokens)
	}},
	{name: "HIT%", width: 5, at: lipgloss.Right, need: 3, cell: func(_ *drawing, p *view.RecentPick) cell { return plain(percent(share(p), true)) }, less: func(a, b *view.RecentPick) int {
		return cmp.Compare(share(b), share(a))
	}},
	{name: "DEPTH", width: barWidth, need: 9, cell: func(d *drawing, p *view.RecentPick) cell { return d.bar(share(p), barWidth, cool) }},
	{name: "us", width: 5, at: lipgloss.Right, need: 10, cell: func(_ *drawing, p *view.RecentPick) cell { return plain(amount(p.TookUs)) }, less: func(a, b *view.RecentPick) int {
		return cmp.Compare(b.TookUs, a.TookUs)
	}},
	{name: "MODEL", width: 24, need: 11, cell: func(_ *drawing, p *view.RecentPick) cell { return plain(p.Model) }},
	{name: "REASON", width: 25, need: 7, cell: func(_ *drawing, p *view.RecentPick) cell { return text(warn, deref(p.Reason)) }},
	{name: "REQUEST", need: 0, cell: func(_ *drawing, p *view.RecentPick) cell { return plain(p.RequestID) }},
}

func share(p *view.RecentPick) float64 { return part(float64(p.Cached), float64(p.Tokens)).v }

func margin(p *view.RecentPick) float64 {
	if p.Margin == nil {
		return 1e300 // nobody came near
	}
	return *p.Margin
}

func signed(v *float64) cell {
	if v == nil {
		return text(dim, "-")
	}
	return plain(fmt.Sprintf("%+.3f", *v))
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
