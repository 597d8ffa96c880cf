package top

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/eppctl/eppctl/internal/core/view"
)

// selection is the row the mark stands at.
func (r *rig) selection() string {
	for l := range strings.Lines(r.plain()) {
		if rest, ok := strings.CutPrefix(l, "> "); ok {
			return strings.Fields(rest)[0]
		}
	}
	return ""
}

// column lists the first words of the rows.
func (r *rig) names() (list []string) {
	for l := range strings.Lines(r.plain()) {
		if f := strings.Fields(strings.TrimPrefix(l, ">")); len(f) > 3 && strings.HasPrefix(f[0], "vllm-") && (l[0] == '>' || l[0] == ' ') {
			list = append(list, f[0])
		}
	}
	return list
}

// TOP-05: a pause stands still while frames are kept, and steps back to before it.
func TestPause(t *testing.T) {
	r := busy(t, 120, 40)
	r.has("LIVE 11:43:07")
	r.keys("p")
	for range 5 {
		r.traffic()
		r.frame(time.Second)
	}
	r.has("PAUSED 11:43:07 (5.0 s ago)")
	r.keys("<")
	r.has("PAUSED 11:43:06 (6.0 s ago)")
	r.keys("> >")
	r.has("PAUSED 11:43:08 (4.0 s ago)")
	r.keys("[")
	r.has("PAUSED 11:42:58 (14 s ago)")
	for range 20 {
		r.keys("]")
	}
	r.has("PAUSED 11:43:12 (0.0 s ago)")
	for range 20 {
		r.keys("[")
	}
	r.has("PAUSED 11:42:07", "REQUESTS  ?/s") // the oldest: nothing to compare with
	r.keys("space")
	r.has("LIVE 11:43:12")
	// Stepping alone pauses.
	r.keys("<")
	r.has("PAUSED 11:43:11")
}

// What is shown of a frame is the same when it is stepped back to, but for the first line,
// which tells the mode, and the last, the keys.
func TestStepBackShowsWhatWasShown(t *testing.T) {
	r := busy(t, 120, 40)
	shown := func() string { return strings.Join(strings.Split(r.plain(), "\n")[1:39], "\n") }
	before := shown()
	r.fleet.Pods[2].State = "down"
	r.frame(time.Second)
	r.has("1 down")
	r.keys("<")
	if after := shown(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TOP-06: the selection follows its row; that of a row that is gone goes to the one
// in its place.
func TestSelection(t *testing.T) {
	r := busy(t, 120, 40)
	r.keys("j j j j")
	if got := r.selection(); got != "vllm-a-7" {
		t.Fatalf("selected %q", got)
	}
	r.keys("s s s s") // by waiting
	if got, first := r.selection(), r.names()[0]; got != "vllm-a-7" || first != "vllm-b-0" {
		t.Errorf("selected %q, first %q", got, first)
	}
	r.keys("r")
	if last := r.names()[len(r.names())-1]; last != "vllm-b-0" || r.selection() != "vllm-a-7" {
		t.Errorf("selected %q, last %q", r.selection(), last)
	}
	r.keys("r S S S S")
	if got := r.selection(); got != "vllm-a-7" {
		t.Errorf("by name again: %q", got)
	}
	r.fleet.Pods = append(r.fleet.Pods[:2:2], r.fleet.Pods[3:]...)
	r.frame(time.Second)
	if got := r.selection(); got != "vllm-b-0" {
		t.Errorf("vllm-a-7 is gone, selected is %q", got)
	}
	r.keys("G")
	if got := r.selection(); got != "vllm-c-0" {
		t.Errorf("at the end: %q", got)
	}
	r.keys("g k")
	if got := r.selection(); !strings.HasPrefix(got, "evil") {
		t.Errorf("at the beginning: %q", got)
	}
	// More rows than lines: the selected one is always among those shown.
	r.send(tea.WindowSizeMsg{Width: 80, Height: 12})
	for range 8 {
		r.keys("j")
		if r.selection() == "" {
			t.Fatalf("the selection is out of sight:\n%s", r.plain())
		}
	}
}

func TestFilter(t *testing.T) {
	r := busy(t, 120, 40)
	r.keys("/ A - q") // letters are no commands here
	r.has("filter: A-q", "nothing passes the filter")
	r.keys("backspace")
	if got := strings.Join(r.names(), " "); got != "vllm-a-1 vllm-a-3 vllm-a-7" {
		t.Errorf("a-: %s", got)
	}
	r.keys("enter j")
	r.has("filter A-")
	r.keys("esc")
	r.hasNot("filter A-")
	r.keys("/ ! a -")
	if got := strings.Join(r.names(), " "); got != "vllm-b-0 vllm-b-1 vllm-b-2 vllm-c-0" {
		t.Errorf("!a-: %s", got)
	}
	r.keys("esc f")
	if got := strings.Join(r.names(), " "); got != "vllm-a-7 vllm-b-0 vllm-b-1 vllm-b-2 vllm-c-0" {
		t.Errorf("faults: %s", got)
	}
	r.keys("f / ctrl+c")
	if r.wrote["quit"] == "" {
		t.Error("ctrl+c does not quit while a filter is typed")
	}
}

// The pod that is looked into is asked for in full, and its ages and breaker count
// on.
func TestDetail(t *testing.T) {
	r := busy(t, 120, 40)
	r.keys("j j j j enter")
	if got := r.asked[len(r.asked)-1]; got != "64 vllm-a-7" {
		t.Errorf("asked for %q", got)
	}
	r.has("throttled", "HW thermal slowdown", "running 1 of 4: sql", "waiting: chat", "vllm:kv_cache_usage_perc", "about 0.8", "SIGNALS")
	r.keys("esc")
	r.hasNot("SIGNALS")
	r.keys("2 G enter") // the second rank of vllm-c-0
	r.has("rank 1", "gap(4)", "replay-failed", "batches 118682 to 118799", "missed 118")
	r.keys("1 g j j j j j j enter")
	r.has("probe 2.6 s", "left out of every pick: failing", "server errors in a row: 6")
	r.time = r.time.Add(2 * time.Second)
	r.has("probe 0.6 s")
	r.time = r.time.Add(time.Second)
	r.has("probing")
	r.keys("esc")
	r.fleet.Pods = r.fleet.Pods[:3]
	r.m.detail = "vllm-b-0"
	r.frame(time.Second)
	r.has("vllm-b-0 is not in the fleet in this frame")
}

// A decision is explained by explain's own rendering; one that is not known any
// more says so.
func TestCard(t *testing.T) {
	r := busy(t, 120, 40)
	r.keys("3 enter")
	r.has("PICK", "REQUEST", "SCORES", "TIE")
	r.keys("esc 1 G")
	r.keys("e")
	r.has("none of the last 40 picks went to vllm-c-0")
	r.card = ""
	r.keys("g j j e")
	r.has("no recent pick has the id ab-0")
	r.card = `{"kind":"Other"}`
	r.keys("esc e")
	r.has("the answer is no Explanation")
	// An answer that comes after its card was closed opens nothing.
	cmd := r.m.explain("ab-0")
	r.keys("esc")
	r.send(cmd())
	r.hasNot("Explanation")
}

func TestWrite(t *testing.T) {
	r := busy(t, 120, 40)
	r.keys("w")
	const name = "eppctl-top-20261129T114307-16.json"
	r.has("wrote " + name)
	var s view.Snapshot
	if err := json.Unmarshal([]byte(r.wrote[name]), &s); err != nil || len(s.Pods) != len(r.fleet.Pods) || s.Pods[7].Name != r.fleet.Pods[7].Name {
		t.Errorf("%v in %.100s", err, r.wrote[name])
	}
	r.keys("w")
	r.has("file already exists")
	r.keys("< w")
	r.has("wrote eppctl-top-20261129T114306-15.json")
	r.time = r.time.Add(6 * time.Second)
	r.hasNot("wrote")
}

func TestQuit(t *testing.T) {
	for _, keys := range []string{"q", "ctrl+c", "? q", "3 enter q", "p q"} {
		r := busy(t, 80, 24)
		if r.keys(keys); r.wrote["quit"] == "" {
			t.Errorf("%q does not quit", keys)
		}
	}
}

func TestInterval(t *testing.T) {
	r := busy(t, 120, 40)
	r.keys("+ +")
	r.has("LIVE 11:43:07  4s")
	for range 9 {
		r.keys("-")
	}
	if r.m.interval != minInterval {
		t.Errorf("%v", r.m.interval)
	}
	for range 20 {
		r.keys("+")
	}
	if r.m.interval != maxInterval {
		t.Errorf("%v", r.m.interval)
	}
}

// The last 600 frames are kept, ten minutes of them, and 64 MiB at most: as the help and
// docs/top.md say.
func TestTenMinutesAreKept(t *testing.T) {
	r := newRig(t, 120, 40)
	r.fleet.Pods, r.fleet.Picks = r.fleet.Pods[:1], nil
	for range 700 {
		r.frame(time.Second)
	}
	h := &r.m.history
	if n, span := len(h.frames), h.at(h.newest()).got.Sub(h.frames[0].got); n != 600 || span != 599*time.Second {
		t.Errorf("%d frames of %v are kept", n, span)
	}
	r.command("at -9m59s")
	r.has("PAUSED 11:43:48")
	r.command("at -10m") // the nearest that there is
	r.has("PAUSED 11:43:48")
	for range 5 {
		h.add(&frame{raw: make([]byte, 16<<20), got: r.time}, 0)
	}
	if n := len(h.frames); n != 4 || h.bytes != 64<<20 {
		t.Errorf("%d frames of %d bytes are kept", n, h.bytes)
	}
}

// What is kept is bounded by number and by size, and step back ends at the oldest.
func TestHistoryIsBounded(t *testing.T) {
	r := newRig(t, 120, 40)
	r.fleet.Pods, r.fleet.Picks = r.fleet.Pods[:1], nil
	for range keptFrames + 50 {
		r.frame(time.Second)
	}
	h := &r.m.history
	if len(h.frames) != keptFrames || h.gone != 50 {
		t.Errorf("%d frames, %d gone", len(h.frames), h.gone)
	}
	bytes := 0
	for _, f := range h.frames {
		bytes += len(f.raw)
	}
	if bytes != h.bytes {
		t.Errorf("%d bytes counted, %d kept", h.bytes, bytes)
	}
	for range 10 {
		h.add(&frame{raw: make([]byte, keptBytes/4), got: r.time}, 0)
	}
	if h.bytes > keptBytes || len(h.frames) > 4 {
		t.Errorf("%d frames of %d bytes", len(h.frames), h.bytes)
	}
	if n := h.clamp(0); h.at(n) != h.frames[0] {
		t.Errorf("the oldest is %d", n)
	}
	// A pause whose frame is dropped meanwhile goes on with the oldest.
	p := busy(t, 120, 40)
	p.keys("[ [ [ [ [ [ [")
	p.fleet.Pods, p.fleet.Picks = p.fleet.Pods[:1], nil
	for range keptFrames + 5 {
		p.frame(time.Second)
	}
	p.keys("<")
	p.has("PAUSED")
}

// Rates are of the last ten seconds, shares of the last minute, and a pod that came
// in between counts from zero.
func TestRates(t *testing.T) {
	r := busy(t, 200, 60)
	row := func(name string) *podRow {
		for _, p := range r.m.sheet.pods {
			if p.Name == name {
				return p
			}
		}
		t.Fatalf("no pod %q", name)
		return nil
	}
	if got := row("vllm-a-1").picks; got != (rate{96, true}) {
		t.Errorf("%v", got)
	}
	if got := r.m.sheet.requests.v; got != 374 {
		t.Errorf("requests %v, with those refused", got)
	}
	for range 10 { // no more traffic
		r.frame(time.Second)
	}
	if got := row("vllm-a-1"); got.picks != (rate{0, true}) || got.share.v < 0.25 {
		t.Errorf("after ten quiet seconds: %v, share %v", got.picks, got.share)
	}
	p := &r.fleet.Pods[0]
	p.Epoch, p.Served = 12, view.PodServed{Picks: 30}
	r.frame(time.Second)
	if got := row("vllm-a-1").picks; got != (rate{3, true}) {
		t.Errorf("of a pod that came new: %v", got)
	}
}

// TOP-10: the screen is drawn when something has changed, and else once a second.
func TestDrawsAreFew(t *testing.T) {
	r := busy(t, 120, 40)
	draws := func() (n int) {
		last := time.Time{}
		for range 100 { // ten seconds of ticks and of polls that have no answer yet
			r.time = r.time.Add(100 * time.Millisecond)
			r.m.Update(tickMsg{})
			r.m.Update(pollMsg{})
			if r.m.View(); r.m.drawnAt != last {
				n, last = n+1, r.m.drawnAt
			}
		}
		return n
	}
	if n := draws(); n > 21 {
		t.Errorf("%d drawings in ten seconds", n)
	}
	before := r.m.View().Content
	r.m.Update(tea.KeyPressMsg{Text: "3", Code: '3'})
	if r.m.View().Content == before {
		t.Error("a key does not show at once")
	}
}

// An answer that is none is a failure like any other.
func TestBadAnswers(t *testing.T) {
	for _, raw := range []string{"", "{", `{"kind":"Picks"}`, `[]`, `{"kind":"Snapshot","pods":[{"name":3}]}`} {
		r := busy(t, 120, 40)
		r.send(frameMsg{raw: []byte(raw), got: r.time})
		r.has("disconnected", "the answer is no Snapshot")
	}
	r := newRig(t, 80, 24)
	r.send(frameMsg{err: errors.New("refused"), got: r.time})
	r.has("no data yet", "disconnected: refused; trying on")
	r.keys("j k g G enter e w p < > s r f 1 2 3 tab ? esc a")
}

// FuzzScreen: whatever an answer says, the screen fits, and nothing of it reaches
// the terminal as a command.
func FuzzScreen(f *testing.F) {
	s := fleet()
	b, err := json.Marshal(&s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, "j enter")
	f.Add([]byte(`{"kind":"Snapshot","pods":[{"name":"\u001b]0;x\u0007","ranks":null}],"index":{"blocks":-1},"picks":[{}]}`), "3 enter")
	f.Add([]byte(`{"kind":"Snapshot","pods":[{"telemetry":{"waiting":1e308,"kv_usage":-5}}]}`), "2 e")
	f.Fuzz(func(t *testing.T, raw []byte, keys string) {
		if len(keys) > 64 {
			return
		}
		r := newRig(t, 100, 30)
		r.frame(0)
		r.card = string(raw)
		r.send(frameMsg{raw: raw, got: r.time.Add(time.Second)})
		r.keys(keys)
		for l := range strings.SplitSeq(strings.TrimSuffix(r.plain(), "\n"), "\n") {
			if strings.ContainsAny(l, "\x1b\x07\r\x00\u202e") {
				t.Errorf("%q", l)
			}
			if n := lipgloss.Width(l); n > 100 {
				t.Errorf("%d columns: %q", n, l)
			}
		}
	})
}

// What engines report comes from their responses where those are shown, else from
// the counters of their metrics pages, and is not known through a restart.
func TestReportedHits(t *testing.T) {
	served := func(queried, cached uint64) view.PodServed {
		return view.PodServed{EngineQueried: queried, EngineCached: cached}
	}
	for name, tc := range map[string]struct {
		from, to podCounts
		want     [2]float64
	}{
		"responses":        {podCounts{served: served(100, 50), queried: new(1.0), hit: new(1.0)}, podCounts{served: served(300, 200), queried: new(9.0), hit: new(2.0)}, [2]float64{150, 200}},
		"metrics":          {podCounts{queried: new(100.0), hit: new(50.0)}, podCounts{queried: new(500.0), hit: new(150.0)}, [2]float64{100, 400}},
		"a restart":        {podCounts{queried: new(100.0), hit: new(50.0)}, podCounts{queried: new(5.0), hit: new(1.0)}, [2]float64{}},
		"no counters":      {podCounts{}, podCounts{}, [2]float64{}},
		"the first frame":  {podCounts{}, podCounts{queried: new(5.0), hit: new(1.0)}, [2]float64{}},
		"one of two known": {podCounts{queried: new(5.0)}, podCounts{queried: new(6.0), hit: new(1.0)}, [2]float64{}},
	} {
		hit, queried := reported(tc.from, tc.to)
		if got := [2]float64{hit, queried}; got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
