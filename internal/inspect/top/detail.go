package top

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// detailText is all that a frame tells of one pod.
func (m *model) detailText(d *drawing) []string {
	i := slices.IndexFunc(m.sheet.pods, func(r *podRow) bool { return r.Name == m.detail })
	if i < 0 {
		return []string{line(m.width, text(warn, m.detail+" is not in the fleet in this frame"))}
	}
	t := &lines{w: m.width}
	r := m.sheet.pods[i]
	t.identity(r)
	t.flow(d, r)
	t.trends(d, &m.history, m.shown, r.Name)
	t.cache(d, r)
	t.streams(d, r)
	t.tokenIDs(d, r)
	t.scrape(d, r)
	t.adapters(r)
	t.hardware(d, r)
	t.signals(d, r)
	t.decisions(d, m.sheet.picks, r.Name)
	return t.list
}

// labelWidth is that of the labels in front of lines.
const labelWidth = 10

// lines gathers labelled lines.
type lines struct {
	w    int
	list []string
}

// add writes a line, and what does not fit into it below.
func (t *lines) add(label string, parts ...cell) {
	var now cell
	flush := func() {
		t.list = append(t.list, (text(bold, fmt.Sprintf("%-*s", labelWidth, label))+now).fit(t.w, lipgloss.Left))
		label, now = "", ""
	}
	for _, part := range parts {
		for i, p := range part.broken(t.w - labelWidth) {
			if i > 0 || p != "" && now != "" && joined(now, p).width() > t.w-labelWidth {
				flush()
			}
			now = joined(now, p)
		}
	}
	flush()
}

func (t *lines) identity(r *podRow) {
	t.add("POD", text(bold, r.Name), plain(r.Addr), plain(r.Engine), plain(r.Model), plain("role "+r.Role), stateCell(r))
	if r.Filter != "" {
		t.add("", text(bad, "left out of every pick: "+r.Filter))
	}
	if r.Draining {
		t.add("", text(warn, "draining: it gets no new requests"))
	}
}

func (t *lines) flow(d *drawing, r *podRow) {
	b := &r.Breaker
	t.add("RATES", plain(r.picks.String()+" picks/s"), plain("share "+percent(r.share.v, r.share.ok)+"%"),
		plain(r.placed(count(r.Served.Picks))+" picks since it joined"))
	t.add("LOAD", append([]cell{plain("engine: waiting " + number(r.Telemetry.Waiting) + ", running " + number(r.Telemetry.Running))}, ownLoad(r)...)...)
	t.add("BREAKER", text(dim, closed(b)), breakerCell(d, r), plain(fmt.Sprintf("opens at %d before the first token", b.Limit)), plain(fmt.Sprintf("server errors in a row: %d", b.Errors)))
}

// ownLoad is what the picker has placed on a pod, by its own account.
func ownLoad(r *podRow) []cell {
	if !r.ours {
		return []cell{plain("ours: " + unknown)}
	}
	return []cell{
		plain(fmt.Sprintf("ours: in flight %d, before the first token %d", r.Load.InFlight, r.Load.Waiting)),
		plain("queue " + long(millis(r.Load.QueueMs))), plain("holds " + whole(int(r.Load.HeldTokens)) + " prompt tokens"),
	}
}

func closed(b *view.PodBreak) string {
	if b.Open {
		return ""
	}
	return "closed"
}

func (t *lines) cache(d *drawing, r *podRow) {
	kv := known(unknown)
	if v := r.Telemetry.KVUsage; v != nil {
		kv = d.bar(*v, 12, load(*v)) + plain(" "+percent(*v, true)+"%")
	}
	t.add("KV POOL", kv)
	t.add("HITS", plain("counted on "+percent(r.hit.v, r.hit.ok)+"% of the prompt tokens"), plain("engine reports "+percent(r.engine.v, r.engine.ok)+"%"))
	if r.depth.ok {
		t.add("DEPTH", d.depth(r.depth, 20), plain(fmt.Sprintf("half of the picks up to %s%% of the prompt", percent(r.depth.half, true))), plain(fmt.Sprintf("nineteen of twenty up to %s%%", percent(r.depth.most, true))))
	}
	parts := []cell{d.stack(r.blocks, held(r), 20)}
	for i, name := range []string{"GPU", "host", "disk", "remote"} {
		parts = append(parts, plain(fmt.Sprintf("%s %s %d", d.tiers[i], name, r.blocks[i])))
	}
	t.add("BLOCKS", parts...)
}

func (t *lines) streams(d *drawing, r *podRow) {
	t.add("EVENTS", plain(r.events.String()+" batches/s"), plain(rateSize(r.bytes)))
	for i := range r.Ranks {
		x := &r.Ranks[i]
		size := unknown
		if x.BlockSize != nil {
			size = fmt.Sprint(*x.BlockSize)
		}
		parts := []cell{plain(fmt.Sprintf("rank %d", x.Rank)), rankLoad(r, x), syncCell(view.SyncLabel(x.Sync, x.Missing)),
			plain("for " + long(millis(x.SinceMs+float64(d.later)))), text(warn, x.Why), plain(x.Detail),
			plain("last event " + d.ago(x.EventAge)), plain(fmt.Sprintf("seq %d", x.LastSeq)), plain("block size " + size),
			plain(fmt.Sprintf("lost %d", x.Lost))}
		if e := x.Events; e != nil {
			parts = append(parts, plain(fmt.Sprintf("stored %d, removed %d, cleared %d", e.Stored, e.Removed, e.Cleared)),
				plain(fmt.Sprintf("missed %d, dropped %d, unreadable %d, purges %d", e.Missed, e.Dropped, e.Undecodable+e.Skipped, e.Purges)),
				plain(fmt.Sprintf("lag %.0f ms", e.LagMs)))
		}
		if x.Approximate {
			parts = append(parts, text(warn, "approximate: a cache group of unknown kind"))
		}
		t.add("", parts...)
	}
}

// rankLoad is what we placed on a rank, where the pod has several.
func rankLoad(r *podRow, x *view.Rank) cell {
	if len(r.Ranks) < 2 || !r.ours {
		return ""
	}
	return plain(fmt.Sprintf("in flight %d, before the first token %d, queue %s", x.Load.InFlight, x.Load.Waiting, long(millis(x.Load.QueueMs))))
}

func (t *lines) scrape(d *drawing, r *podRow) {
	s := &r.Telemetry
	l := none
	if s.State != "fresh" {
		l = warn
	}
	t.add("METRICS", text(l, s.State), plain("read "+d.ago(s.AgeMs)), text(warn, s.Error))
}

func (t *lines) adapters(r *podRow) {
	var parts []cell
	if a := r.Telemetry.LoRA; a != nil {
		parts = append(parts, plain(fmt.Sprintf("running %d of %d: %s", len(a.Running), a.Max, names(a.Running))), plain("waiting: "+names(a.Waiting)))
	}
	if len(r.Adapters) > 0 {
		parts = append(parts, plain("loaded: "+names(r.Adapters)))
	}
	if len(parts) == 0 {
		parts = append(parts, known(unknown))
	}
	t.add("LORA", parts...)
}

// manyNames is as many names as are listed.
const manyNames = 12

func names(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	if n := len(list) - manyNames; n > 0 {
		return strings.Join(list[:manyNames], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(list, ", ")
}

func (t *lines) hardware(d *drawing, r *podRow) {
	v := r.Telemetry.Device
	if v == nil {
		t.add("HARDWARE", text(dim, "? no exporter tells of it (scrape.device_exporters)"))
		return
	}
	parts := []cell{deviceCell(v), text(warn, v.Why), plain("read " + d.ago(v.AgeMs))}
	if len(v.Missing) > 0 {
		parts = append(parts, text(dim, "not told: "+names(v.Missing)))
	}
	t.add("HARDWARE", parts...)
}

// lastPicks is how many of a pod's picks are listed beside all else.
const lastPicks = 8

func (t *lines) decisions(d *drawing, picks []*view.RecentPick, pod string) {
	label, n := "PICKS", 0
	for _, p := range picks {
		if deref(p.Pod) != pod {
			continue
		}
		t.add(label, plain(clock(p.At, d.zone)), signed(p.Score), plain(percent(share(p), true)+"% of "+out.Plural(p.Tokens, "token")), plain(p.RequestID))
		if label, n = "", n+1; n == lastPicks {
			return
		}
	}
	if label != "" {
		t.add(label, text(dim, fmt.Sprintf("none of the last %d", len(picks))))
	}
}

// signals is the metrics page, number by number.
func (t *lines) signals(d *drawing, r *podRow) {
	label := "SIGNALS"
	for i, s := range r.Telemetry.Signals {
		if i == mostRows {
			t.add("", text(dim, fmt.Sprintf("and %d more", len(r.Telemetry.Signals)-i)))
			return
		}
		value := unknown
		if s.Value != nil {
			value = fmt.Sprintf("%.4g", *s.Value)
			if v := *s.Value; v == math.Trunc(v) && math.Abs(v) < 1e15 { // a counter is read digit by digit
				value = strconv.FormatFloat(v, 'f', 0, 64)
			}
		}
		if s.Estimate {
			value = "about " + value
		}
		age := ""
		if s.AgeMs != nil {
			age = d.ago(s.AgeMs)
		}
		t.add(label, plain(fmt.Sprintf("%-18s %12s", out.Clean(s.Name), value)), plain(age), text(dim, s.Metric))
		label = ""
	}
}

// ago is how long something is past by now.
func (d *drawing) ago(ms *int64) string {
	if ms == nil {
		return "never"
	}
	return long(time.Duration(*ms+d.later)*time.Millisecond) + " ago"
}

func rateSize(r rate) string {
	if !r.ok {
		return unknown + " B/s"
	}
	return size(int64(r.v)) + "/s"
}
