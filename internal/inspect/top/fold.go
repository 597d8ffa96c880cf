package top

import (
	"fmt"

	"github.com/eppctl/eppctl/internal/core/view"
)

// podLine is a line of the table of pods: a pod, or, below one that is unfolded, one
// of its ranks.
type podLine struct {
	*podRow
	rank *view.Rank // nil = the pod
}

func (l podLine) key() string {
	if l.rank == nil {
		return l.Name
	}
	return fmt.Sprint(l.Name, "\x00", l.rank.Rank)
}

// unfold puts the ranks of those pods that are unfolded below them.
func (m *model) unfold(pods []*podRow) []podLine {
	list := make([]podLine, 0, len(pods))
	for _, r := range pods {
		list = append(list, podLine{podRow: r})
		if !m.unfolded[r.Name] || len(r.Ranks) < 2 {
			continue
		}
		for i := range r.Ranks {
			list = append(list, podLine{r, &r.Ranks[i]})
		}
	}
	return list
}

// fold unfolds the pod of the selected row, or folds it.
func (m *model) fold() {
	r := m.selectedPod()
	switch {
	case r == nil || m.page != podsPage:
		return
	case len(r.Ranks) < 2:
		m.tell(r.Name + " has one rank")
		return
	}
	if m.unfolded[r.Name] = !m.unfolded[r.Name]; !m.unfolded[r.Name] {
		delete(m.unfolded, r.Name)
		m.cursors[podsPage] = r.Name // the rank that was selected is out of sight
	}
}

// foldAll unfolds all pods, or folds them when one is unfolded.
func (m *model) foldAll() {
	if len(m.unfolded) > 0 {
		clear(m.unfolded)
		return
	}
	for _, r := range m.sheet.pods {
		if len(r.Ranks) > 1 {
			m.unfolded[r.Name] = true
		}
	}
}

// podName is the pod's, with the number of its ranks where there are several.
func podName(d *drawing, r *podRow) cell {
	if n := len(r.Ranks); n > 1 {
		return plain(r.Name) + text(dim, fmt.Sprintf(" %s%d", d.times, n))
	}
	return plain(r.Name)
}

// rankCells are the columns of the table of pods that a single rank has something to
// say in. Metrics pages do not tell ranks apart.
var rankCells = map[string]func(d *drawing, l podLine) cell{
	"POD":   func(_ *drawing, l podLine) cell { return text(dim, fmt.Sprintf("  rank %d", l.rank.Rank)) },
	"FLY":   func(_ *drawing, l podLine) cell { return known(l.placed(whole(l.rank.Load.InFlight))) },
	"QUEUE": func(_ *drawing, l podLine) cell { return known(l.placed(long(millis(l.rank.Load.QueueMs)))) },
	"TIERS": func(d *drawing, l podLine) cell { return d.stack(tiers(l.rank), d.sheet.fullest, tierWidth) },
	"BLOCKS": func(_ *drawing, l podLine) cell {
		b := tiers(l.rank)
		return plain(whole(b[0] + b[1] + b[2] + b[3]))
	},
	"BREAKER": func(_ *drawing, l podLine) cell { return text(dim, l.placed(whole(l.rank.Load.Waiting))+" waiting") },
	"SYNC":    func(_ *drawing, l podLine) cell { return syncCell(view.SyncLabel(l.rank.Sync, l.rank.Missing)) },
	"EVENT":   func(d *drawing, l podLine) cell { return d.ageCell(l.rank.EventAge, false) },
}

// tiers are the blocks of a rank by tier.
func tiers(x *view.Rank) [4]int { return [4]int{x.GPU, x.Host, x.Disk, x.Remote} }

// drawPods is the table of pods with the ranks of those that are unfolded.
func drawPods(d *drawing, o order, w int, list []podLine, from, to, at int) []string {
	t := newLayout(podColumns, o.column, w)
	lines := []string{t.header(d, o)}
	for i := from; i < to; i++ {
		l := list[i]
		if l.rank == nil {
			lines = append(lines, t.row(d, l.podRow, i == at))
			continue
		}
		lines = append(lines, t.across(mark(i == at), func(k, _ int) cell {
			if of := rankCells[podColumns[k].name]; of != nil {
				return of(d, l)
			}
			return ""
		}))
	}
	return lines
}
