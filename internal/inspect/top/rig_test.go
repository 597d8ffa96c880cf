package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"go.uber.org/goleak"

	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // terminals get local times
	goleak.VerifyTestMain(m,
		// It waits for an interrupt of the tests as long as they run.
		goleak.IgnoreAnyFunction("github.com/charmbracelet/x/exp/teatest/v2.NewTestModel.func2"))
}

// begin is when the rig's time begins.
var begin = time.Date(2026, 11, 29, 11, 42, 7, 0, time.UTC)

// rig is a screen without a terminal, whose time goes on when it is told to. What
// it shows are frames as serve writes them.
type rig struct {
	t      testing.TB
	m      *model
	time   time.Time
	fleet  view.Snapshot
	wrote  map[string]string
	card   string // answer for any pick
	down   error  // nil = the server answers
	timers int    // begun so far; none of them ends
	mu     sync.Mutex
	asked  []string
}

func newRig(t testing.TB, w, h int) *rig {
	r := &rig{t: t, time: begin, fleet: fleet(), wrote: map[string]string{}}
	c := &Command{Addr: "127.0.0.1:9004", Interval: time.Second}
	r.m = c.model(r, &out.Streams{Getenv: func(name string) string { return map[string]string{"LANG": "C.UTF-8"}[name] }})
	r.m.now = func() time.Time { return r.time }
	r.m.after = func(time.Duration, func(time.Time) tea.Msg) tea.Cmd {
		r.timers++
		return nil
	}
	r.m.save = func(name string, text []byte) error {
		if r.wrote[name] != "" {
			return &os.PathError{Op: "open", Path: name, Err: os.ErrExist}
		}
		r.wrote[name] = string(text)
		return nil
	}
	r.send(tea.WindowSizeMsg{Width: w, Height: h})
	return r
}

// State and Recent are the admin API.
func (r *rig) State(_ context.Context, picks int, detail string) ([]byte, error) {
	r.mu.Lock() // a program asks for several at once
	defer r.mu.Unlock()
	r.asked = append(r.asked, fmt.Sprintf("%d %s", picks, detail))
	if r.down != nil {
		return nil, r.down
	}
	r.fleet.At = r.time.Format(time.RFC3339Nano)
	b, err := json.Marshal(&r.fleet)
	return append(b, '\n'), err
}

func (r *rig) Recent(_ context.Context, id string) ([]byte, error) {
	if r.card == "" {
		return nil, errors.New("no recent pick has the id " + id)
	}
	return []byte(r.card), nil
}

// send hands a message to the model, and what its commands give as well.
func (r *rig) send(msg tea.Msg) {
	_, cmd := r.m.Update(msg)
	if cmd != nil {
		if next := cmd(); next != nil {
			if _, quit := next.(tea.QuitMsg); quit {
				r.wrote["quit"] = "yes"
				return
			}
			r.send(next)
		}
	}
}

// frame lets time pass, and a frame come.
func (r *rig) frame(after time.Duration) {
	r.time = r.time.Add(after)
	r.send(r.m.poll()())
}

// keys presses keys by their names, as words.
func (r *rig) keys(names string) {
	for _, name := range strings.Fields(names) {
		r.send(press(name))
	}
}

// press is the message of a key by its name.
func press(name string) tea.KeyPressMsg {
	if letter, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl}
	}
	if k, ok := keysByName[name]; ok {
		return tea.KeyPressMsg(k)
	}
	return tea.KeyPressMsg{Text: name, Code: []rune(name)[0]}
}

// keysByName are those that are no letters.
var keysByName = map[string]tea.Key{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "backspace": {Code: tea.KeyBackspace}, "space": {Text: " ", Code: tea.KeySpace},
	"tab": {Code: tea.KeyTab}, "shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift},
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
	"pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
}

// text is the screen as a terminal of so many colours shows it.
func (r *rig) text(p colorprofile.Profile) string {
	r.t.Helper()
	r.m.drawn = "" // as if time had brought a tick
	var b bytes.Buffer
	if _, err := (&colorprofile.Writer{Forward: &b, Profile: p}).Write([]byte(r.m.View().Content)); err != nil {
		r.t.Fatal(err)
	}
	return b.String() + "\n"
}

func (r *rig) plain() string { return r.text(colorprofile.NoTTY) }

// has wants texts on the screen.
func (r *rig) has(texts ...string) {
	r.t.Helper()
	s := r.plain()
	for _, want := range texts {
		if !strings.Contains(s, want) {
			r.t.Fatalf("%q does not stand on the screen:\n%s", want, s)
		}
	}
}

func (r *rig) hasNot(texts ...string) {
	r.t.Helper()
	s := r.plain()
	for _, no := range texts {
		if strings.Contains(s, no) {
			r.t.Fatalf("%q stands on the screen:\n%s", no, s)
		}
	}
}

// busy is a rig that has seen a minute of traffic, at last a frame a second.
func busy(t testing.TB, w, h int) *rig {
	r := newRig(t, w, h)
	r.frame(0)
	for i := range 16 {
		span := 1
		if i < 4 {
			span = 12
		}
		for range span {
			r.traffic()
		}
		r.frame(time.Duration(span) * time.Second)
	}
	raw, err := os.ReadFile(filepath.Join("..", "explain", "testdata", "recorded.json"))
	if err != nil {
		t.Fatal(err)
	}
	r.card = string(raw)
	return r
}

// traffic is a second of it: most goes to the first pods.
func (r *rig) traffic() {
	f := &r.fleet
	for i := range f.Pods {
		p := &f.Pods[i]
		n := uint64([]int{96, 81, 20, 0, 44}[min(i, 4)])
		if p.State == "down" || p.State == "stale" {
			n = 0
		}
		p.Served.Picks += n
		p.Served.Queried += n * 4000
		p.Served.Cached += n * uint64(3300-600*i%3300)
		p.Served.Depths[min(2+i, 10)] += n / 2
		p.Served.Depths[min(5+i, 10)] += n - n/2
		p.Served.EngineQueried += n * 4000
		p.Served.EngineCached += n * uint64(3200-600*i%3200)
		f.Totals.Routed += n
		f.Hits.Queried += n * 4000
		f.Hits.BestAvailable += n * 3500
		f.Hits.Selected += n * uint64(3300-600*i%3300)
		f.Hits.EngineQueried += n * 4000
		f.Hits.EngineCached += n * uint64(3200-600*i%3200)
		for k := range p.Ranks {
			if e := p.Ranks[k].Events; e != nil && p.Ranks[k].Sync == "live" {
				e.Batches += n
				e.Bytes += n * 2000
				e.Stored += n * 5
				e.Removed += n * 4
				p.Ranks[k].LastSeq += n
			}
		}
	}
	f.Totals.Refused++
	f.Index.Evicted += 12
}

// fleet is a fleet with something of everything: a pod that is well, a slow one,
// breakers of both kinds, a stale page, a stream that lost events, one that is
// dead, and a name that is an attack.
func fleet() view.Snapshot {
	pods := []view.PodState{
		some("vllm-a-1", 3, 11, 0.38, 12_345, 2_345, 0, 0),
		some("vllm-a-3", 0, 6, 0.19, 6_100, 0, 0, 0),
		some("vllm-a-7", 8, 14, 0.80, 12_000, 6_000, 1_500, 300),
		some("vllm-b-0", 71, 16, 0.97, 12_900, 12_900, 8_000, 4_000),
		some("vllm-b-1", 0, 1, 0.07, 0, 0, 0, 0),
		some("vllm-b-2", 0, 0, 0, 400, 0, 0, 0),
		some("vllm-c-0", 2, 9, 0.5, 9_000, 0, 0, 0),
		some("evil\x1b[2J\r\nname\u202e", 0, 0, 0, 10, 0, 0, 0),
		some("mögel-pod-mit-langem-namen-aus-dem-dorf", 1, 1, 0.1, 10, 0, 0, 0),
	}
	slow, queue, errs, stale, lost := &pods[2], &pods[3], &pods[4], &pods[5], &pods[6]
	slow.State, slow.Telemetry.Device = "slow", &view.Device{AgeMs: new(int64(900)), Throttled: true, Why: "HW thermal slowdown", Missing: []string{"xid"}}
	slow.Adapters = []string{"sql", "chat"}
	slow.Telemetry.LoRA = &view.LoRA{Max: 4, Running: []string{"sql"}, Waiting: []string{"chat"}}
	slow.Telemetry.Signals = []view.Signal{
		{Name: "waiting", Value: new(8.0), Metric: "vllm:num_requests_waiting", AgeMs: new(int64(300))}, {Name: "kv_usage", Value: new(0.8), Metric: "vllm:kv_cache_usage_perc", AgeMs: new(int64(300)), Estimate: true}, {Name: "preempted"},
	}
	queue.State, queue.Load.InFlight, queue.Load.Waiting, queue.Load.QueueMs = "open", 90, 34, 8200
	queue.Breaker = view.PodBreak{Open: true, Why: "queue", Waiting: 34, Limit: 32}
	errs.State, errs.Filter, errs.Breaker = "open", "failing", view.PodBreak{Open: true, Why: "errors", Limit: 32, Errors: 6, ProbeInMs: new(2600.0)}
	stale.State, stale.Telemetry = "stale", view.Scraped{State: "stale", AgeMs: new(int64(14_200)), Error: "GET /metrics: unexpected EOF"}
	lost.Ranks = append(lost.Ranks, lost.Ranks[0])
	lost.Ranks[1].Rank, lost.Ranks[1].Sync, lost.Ranks[1].Missing, lost.Ranks[1].Lost = 1, "gap", 4, 118
	lost.Ranks[1].Why, lost.Ranks[1].Detail = "replay-failed", "batches 118682 to 118799 are not to be had"
	lost.Ranks[1].Events = &view.RankEvents{Batches: 5, Missed: 118, Undecodable: 2}
	s := view.Snapshot{
		APIVersion: "eppctl/v1", Kind: "Snapshot", Source: "live", Run: "1a2b", Epoch: 9, IntervalMs: 1000, Pods: pods, Total: len(pods),
		Totals: view.Totals{Pods: len(pods), WithEvents: len(pods), InFlight: 122, Waiting: 44, Routed: 100_000},
		Index:  view.IndexState{Blocks: 1_840_000, MaxBlocks: 10_000_000, Bytes: 412 << 20, MaxBytes: new(int64(1 << 30)), BlockSizes: []int{16}},
	}
	lost.Ranks[0].Load, lost.Ranks[1].Load = view.RankLoad{InFlight: 5, Waiting: 1, QueueMs: 310}, view.RankLoad{InFlight: 4, Waiting: 1, QueueMs: 40}
	s.Tokenizers = tokenizers()
	for i := range 40 {
		p := view.RecentPick{
			RequestID: fmt.Sprintf("7d0e-%02d", i), PickID: fmt.Sprintf("ab-%d", i), At: begin.Add(-time.Duration(i) * time.Second).Format(time.RFC3339Nano), Model: "llama",
			Outcome: "picked", Pod: &pods[i%3].Name, Addr: &pods[i%3].Addr, Tokens: 4103, Cached: 3300 - 60*i, Score: new(0.236 - float64(i)/100), Margin: new(float64(i) / 1000),
			RunnerUp: &pods[(i+1)%3].Name, TookUs: 41,
		}
		switch i {
		case 2:
			p.Tie = true
		case 3:
			p.Pod, p.Addr, p.Score, p.Margin, p.RunnerUp, p.Outcome, p.Cached = nil, nil, nil, nil, nil, "no-endpoint", 0
		case 4:
			p.Reason, p.Cached = new("tokenize-slow"), 0
		}
		s.Picks = append(s.Picks, p)
	}
	return s
}

// some is a pod that is well.
func some(name string, waiting, running, kv float64, gpu, host, disk, remote int) view.PodState {
	return view.PodState{
		Name: name, Addr: "10.4.7.31:8000", Epoch: 1, Engine: "vllm", Role: "both", Model: "llama-3.3-70b", Adapters: []string{}, State: "ok",
		Ranks: []view.Rank{{
			Sync: "live", SinceMs: 190_000, EventAge: new(int64(20)), LastSeq: 991_204, Connected: true, BlockSize: new(16),
			GPU: gpu, Host: host, Disk: disk, Remote: remote, Events: &view.RankEvents{LagMs: 3},
		}},
		Telemetry: view.Scraped{State: "fresh", AgeMs: new(int64(300)), Waiting: &waiting, Running: &running, KVUsage: &kv},
		Load:      view.PodLoad{InFlight: int(running), Waiting: int(waiting), QueueMs: 310, HeldTokens: 12_000},
		Breaker:   view.PodBreak{Waiting: int(waiting), Limit: 32},
	}
}
