package top

import (
	"cmp"
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/eppctl/eppctl/internal/core/view"
)

// rankColumns is the table of event streams, one per rank of a pod: how far the
// index can be believed, and why.
var rankColumns = []column[*rankRow]{
	{name: "POD", need: 0, cell: func(_ *drawing, r *rankRow) cell { return plain(r.name()) }, less: func(a, b *rankRow) int { return strings.Compare(a.name(), b.name()) }},
	{name: "SYNC", width: 10, need: 1, cell: func(_ *drawing, r *rankRow) cell { return syncCell(view.SyncLabel(r.rank.Sync, r.rank.Missing)) }, less: func(a, b *rankRow) int {
		return cmp.Compare(syncRank(a.rank.Sync), syncRank(b.rank.Sync))
	}},
	{name: "FOR", width: 4, at: lipgloss.Right, need: 6, cell: func(d *drawing, r *rankRow) cell { return plain(age(millis(r.rank.SinceMs + float64(d.later)))) }},
	{name: "LAST", width: 5, at: lipgloss.Right, need: 2, cell: func(d *drawing, r *rankRow) cell { return d.ageCell(r.rank.EventAge, false) }},
	{name: "SEQ", width: 10, at: lipgloss.Right, need: 5, cell: func(_ *drawing, r *rankRow) cell { return plain(fmt.Sprint(r.rank.LastSeq)) }},
	{name: "LOST", width: 5, at: lipgloss.Right, need: 3, cell: func(_ *drawing, r *rankRow) cell { return faultCell(r.rank.Lost) }, less: func(a, b *rankRow) int { return cmp.Compare(b.rank.Lost, a.rank.Lost) }},
	counter("MISSED", 9, func(e *view.RankEvents) uint64 { return e.Missed }),
	counter("BAD", 8, func(e *view.RankEvents) uint64 { return e.Undecodable + e.Skipped }),
	counter("DROP", 10, func(e *view.RankEvents) uint64 { return e.Dropped }),
	counter("PURGE", 12, func(e *view.RankEvents) uint64 { return e.Purges }),
	counter("STORED", 11, func(e *view.RankEvents) uint64 { return e.Stored }),
	counter("REMOVED", 13, func(e *view.RankEvents) uint64 { return e.Removed }),
	{name: "LAG", width: 7, at: lipgloss.Right, need: 14, cell: func(_ *drawing, r *rankRow) cell {
		if r.rank.Events == nil {
			return known(unknown)
		}
		return plain(fmt.Sprintf("%.0f ms", r.rank.Events.LagMs))
	}},
	{name: "WHY", width: 18, need: 7, cell: func(_ *drawing, r *rankRow) cell { return text(warn, r.rank.Why) }},
	{name: "DETAIL", width: 48, need: 15, cell: func(_ *drawing, r *rankRow) cell { return plain(r.rank.Detail) }},
}

// counter is a column of one counter of faults or events.
func counter(name string, need int, of func(*view.RankEvents) uint64) column[*rankRow] {
	value := func(r *rankRow) (n uint64) {
		if r.rank.Events != nil {
			n = of(r.rank.Events)
		}
		return n
	}
	return column[*rankRow]{
		name: name, width: max(len(name)+1, 5), at: lipgloss.Right, need: need,
		cell: func(_ *drawing, r *rankRow) cell {
			switch {
			case r.rank.Events == nil:
				return known(unknown)
			case name == "STORED" || name == "REMOVED":
				return plain(count(value(r)))
			}
			return faultCell(value(r))
		},
		less: func(a, b *rankRow) int { return cmp.Compare(value(b), value(a)) },
	}
}

// faultCell is a count of what should not be.
func faultCell(n uint64) cell {
	if n == 0 {
		return text(dim, "0")
	}
	return text(warn, count(n))
}

// name is the pod's, with the rank where there are several.
func (r *rankRow) name() string {
	if len(r.pod.Ranks) == 1 {
		return r.pod.Name
	}
	return fmt.Sprintf("%s:%d", r.pod.Name, r.rank.Rank)
}
