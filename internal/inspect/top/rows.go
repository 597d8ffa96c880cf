package top

import (
	"fmt"
	"slices"

	"github.com/eppctl/eppctl/internal/core/view"
)

// The rows of each page, as they are shown, and the one that is selected. The
// selection follows its row by key, wherever sorting moves it.

func (m *model) visiblePods() []*podRow {
	if m.sheet == nil {
		return nil
	}
	list := slices.Clone(m.sheet.pods)
	list = slices.DeleteFunc(list, func(r *podRow) bool { return !matches(r.Name, m.filter) || m.faults && !r.faulty() })
	return sorted(podColumns, m.orders[podsPage], list)
}

func (m *model) visibleRanks() []*rankRow {
	if m.sheet == nil {
		return nil
	}
	list := slices.Clone(m.sheet.ranks)
	list = slices.DeleteFunc(list, func(r *rankRow) bool { return !matches(r.pod.Name, m.filter) || m.faults && !r.pod.faulty() })
	return sorted(rankColumns, m.orders[eventsPage], list)
}

func (m *model) visiblePicks() []*view.RecentPick {
	if m.sheet == nil {
		return nil
	}
	list := slices.Clone(m.sheet.picks)
	list = slices.DeleteFunc(list, func(p *view.RecentPick) bool { return !matches(deref(p.Pod), m.filter) })
	return sorted(pickColumns, m.orders[picksPage], list)
}

func (m *model) visibleIDs() []*idsRow {
	if m.sheet == nil {
		return nil
	}
	list := slices.Clone(m.sheet.ids)
	list = slices.DeleteFunc(list, func(r *idsRow) bool { return !matches(r.model, m.filter) || m.faults && r.verdict() > doubtful })
	return sorted(idsColumns, m.orders[idsPage], list)
}

// rowKeys names the rows of the page.
func (m *model) rowKeys() (keys []string) {
	switch m.page {
	case podsPage:
		for _, l := range m.unfold(m.visiblePods()) {
			keys = append(keys, l.key())
		}
	case idsPage:
		for _, r := range m.visibleIDs() {
			keys = append(keys, r.model+"\x00"+r.Name)
		}
	case eventsPage:
		for _, r := range m.visibleRanks() {
			keys = append(keys, fmt.Sprint(r.pod.Name, "\x00", r.rank.Rank))
		}
	case picksPage:
		for _, p := range m.visiblePicks() {
			keys = append(keys, p.RequestID+"\x00"+p.PickID)
		}
	}
	return keys
}

// selected is the place of the selected row. One that is gone leaves the selection
// to the row that stands where it stood.
func (m *model) selected(keys []string) int {
	i := slices.Index(keys, m.cursors[m.page])
	if i < 0 {
		i = min(m.places[m.page], max(len(keys)-1, 0))
	}
	m.places[m.page] = i
	return i
}

// selectedPod is the pod of the selected row; nil on a page or a list without.
func (m *model) selectedPod() *podRow {
	keys := m.rowKeys()
	if len(keys) == 0 {
		return nil
	}
	i := m.selected(keys)
	switch m.page {
	case podsPage:
		return m.unfold(m.visiblePods())[i].podRow
	case eventsPage:
		return m.visibleRanks()[i].pod
	}
	return nil
}

// nextColumn is the one to sort the page by, after or before the present one.
func (m *model) nextColumn(step int) int {
	at := m.orders[m.page].column
	switch m.page {
	case podsPage:
		return next(podColumns, at, step)
	case eventsPage:
		return next(rankColumns, at, step)
	case idsPage:
		return next(idsColumns, at, step)
	}
	return next(pickColumns, at, step)
}
