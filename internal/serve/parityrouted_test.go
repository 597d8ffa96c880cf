package serve

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/index"
	"github.com/eppctl/eppctl/internal/core/parity"
	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/core/view"
)

// listen makes the stream of pod-0 live, and its block size known.
func (r *parityRig) listen() {
	m := r.podZero().Members[0]
	r.fleet.Sync.Put(m, view.Sync{State: view.Live})
	r.fleet.Index.Register(m, index.Owner{Model: "base", Engine: pod.EngineVLLM})
	r.announce(promptOf(999))
}

func (r *parityRig) podZero() *pod.Pod { return r.fleet.Pods.Snapshot().ByName("pod-0") }

func promptOf(i int) []uint32 {
	ids := make([]uint32, 100)
	for j := range ids {
		ids[j] = uint32(1000*i + j)
	}
	return ids
}

// announce sends the events of a prompt that pod-0 has computed.
func (r *parityRig) announce(ids []uint32) {
	const size = 16
	n, m := len(ids)/size, r.podZero().Members[0]
	e := event.Event{Kind: event.Stored, Tier: event.TierGPU, BlockSize: size, Tokens: ids[:n*size], LoRAID: -1}
	for i := range n {
		e.Hashes = append(e.Hashes, uint64(r.clock.Load())+uint64(i))
	}
	r.check.watch.Store(m, []event.Event{e})
	r.fleet.Index.ApplyBatch(m, []event.Event{e}, r.clock.Load())
}

// route places a request on pod-0 by ids of ours, which announces those that it has
// made of it, and waits for the verdict.
func (r *parityRig) route(ours, theirs []uint32) {
	r.t.Helper()
	q := &pick.Query{Base: "base", Now: r.clock.Load()}
	q.Prompt.Tokens, q.Prompt.Cut, q.Origin = ours, -1, pick.Origin{Provider: byNative}
	w := r.check.routed(&pick.Card{Rows: []pick.Row{{Pod: r.podZero()}}}, q)
	if w == nil {
		r.t.Fatalf("a request is not compared: %v", ours)
	}
	r.announce(theirs)
	w.End(true, r.clock.Load())
	r.pass(3 * time.Second)
	r.check.sweep()
}

// routeMany places n requests that begin with more in the engine.
func (r *parityRig) routeMany(from, n int, more ...uint32) {
	r.t.Helper()
	for i := range n {
		ids := promptOf(from + i)
		r.route(ids, slices.Concat(more, ids))
	}
}

// TestParityOfEvents: TK-51. What engines announce of routed requests is counted, and
// other ids take the claim away although all probes were equal.
func TestParityOfEvents(t *testing.T) {
	r := newParityRig(t, newTokenizingEngine(t))
	r.all()
	r.listen()
	r.routeMany(0, 10)
	if x := r.check.of("base"); x.State != passed || x.Requests.Equal != 10 {
		t.Errorf("equal ids: %+v", x)
	}
	r.routeMany(100, 3, 7)
	x := r.check.of("base")
	if x.State != failed || x.Why != string(reason.ParityEvents) || x.Requests.Differs != 3 || r.status() != tokenizer.Unverified {
		t.Errorf("other ids: %+v, %v", x, r.status())
	}
	if x.DiffersAt == nil || *x.DiffersAt != 0 || x.DiffersBlock == nil || *x.DiffersBlock != 0 || x.Probe != "" ||
		x.Detail != "pod-0 announced other token ids than a request was routed by, from id 0 on (block 0)" {
		t.Errorf("it is not told where they part: %+v", x)
	}
	if text := r.log.String(); !strings.Contains(text, "from id 0 on (block 0)") {
		t.Errorf("the log does not tell where they part:\n%s", text)
	}
	// Ids of other providers, and those whose rank the engine chooses, are not compared.
	q := &pick.Query{Base: "base"}
	q.Origin.Provider = byRender
	if r.check.routed(&pick.Card{Rows: []pick.Row{{Pod: r.podZero()}}}, q) != nil {
		t.Error("the engine's own ids are compared")
	}
}

// TestTellParted: the place is told as far as it is known.
func TestTellParted(t *testing.T) {
	for _, tc := range []struct {
		judged parity.Judged
		at     bool
		block  bool
		detail string
	}{
		{parity.Judged{Verdict: parity.Differs, At: -1, Block: -1}, false, false, "engines announced other token ids than requests were routed by"},
		{parity.Judged{Verdict: parity.Differs, At: 87, Block: 5}, true, true, "pod-1 announced other token ids than a request was routed by, from id 87 on (block 5)"},
		{parity.Judged{Verdict: parity.Differs, At: -1, Block: 3}, false, true, "pod-1 announced other token ids than a request was routed by, in block 3"},
		{parity.Judged{Verdict: parity.Unseen, At: 1, Block: 0}, true, true,
			"pod-1 announced nothing like a request that was routed to it; what begins most like it has other token ids from id 1 on (block 0)"},
	} {
		p := &modelParity{parted: "pod-1"}
		p.tally.Add(tc.judged)
		x := &view.Parity{}
		p.tellParted(x)
		if x.Detail != tc.detail || (x.DiffersAt != nil) != tc.at || tc.at && *x.DiffersAt != tc.judged.At ||
			(x.DiffersBlock != nil) != tc.block || tc.block && *x.DiffersBlock != tc.judged.Block {
			t.Errorf("%+v: %+v", tc.judged, x)
		}
	}
}

// TestParityMetrics: the numbers on the page are those of what was found.
func TestParityMetrics(t *testing.T) {
	probes := len(parity.Probes())
	for name, c := range map[string]struct {
		do   func(*parityRig, *tokenizingEngine)
		want map[string]int // by labels
	}{
		"exact": {func(r *parityRig, _ *tokenizingEngine) {
			r.all()
			r.listen()
			r.routeMany(0, 4)
		}, map[string]int{"state passed": 1, "state failed": 0, "state not-run": 0, "probes equal": probes, "probes differs": 0, "probes skipped": 0, "requests equal": 4}},
		"refuted by a probe": {func(r *parityRig, e *tokenizingEngine) {
			part := "Donaudampf"
			e.wrong.Store(&part)
			r.all()
		}, map[string]int{"state passed": 0, "state failed": 1, "state not-run": 0, "probes equal": probes - 1, "probes differs": 1, "probes skipped": 0}},
		"refuted by events": {func(r *parityRig, _ *tokenizingEngine) {
			r.all()
			r.listen()
			r.routeMany(0, 2)
			r.routeMany(10, 3, 7)
		}, map[string]int{"state passed": 0, "state failed": 1, "state not-run": 0, "probes equal": probes, "probes differs": 0, "probes skipped": 0, "requests equal": 2, "requests differs": 3}},
		"unverified": {func(r *parityRig, _ *tokenizingEngine) { r.check.next() },
			map[string]int{"state passed": 0, "state failed": 0, "state not-run": 1, "probes equal": 0, "probes differs": 0, "probes skipped": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newTokenizingEngine(t)
			r, page := newParityRig(t, e), newRig(t, rigOptions{})
			r.check.met = page.picker.met
			page.picker.tokenizers = r.tokens.snapshot
			page.picker.met.registry.MustRegister(&collector{picker: page.picker})
			c.do(r, e)
			if got := parityOf(t, scrapePage(t, page.picker.met, false), "base"); !maps.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// parityOf reads the numbers about a model's parity off a page, by metric and label.
func parityOf(t *testing.T, page, name string) map[string]int {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for metric, what := range map[string]string{"parity_state": "state", "parity_probes": "probes", "parity_requests_total": "requests"} {
		for _, x := range families["eppctl_"+metric].GetMetric() {
			labels := map[string]string{}
			for _, l := range x.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["model"] == name {
				got[what+" "+labels["state"]+labels["result"]+labels["verdict"]] = int(x.GetGauge().GetValue() + x.GetCounter().GetValue())
			}
		}
	}
	return got
}
