package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/parity"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/modelsource"
	"github.com/eppctl/eppctl/internal/testdata"
)

// harmonyFolder has the files of a gpt-oss, with a part of its vocabulary.
func harmonyFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"config.json":    []byte(`{"model_type":"gpt_oss","architectures":["GptOssForCausalLM"]}`),
		"tokenizer.json": testdata.Gunzip(t, filepath.Join(testdata.Dirs(t, "encoders")[0], "harmony_tokenizer.json.gz")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// harmonyEngine is a vLLM with gpt-oss: its render interface tells what it computes, and
// its /tokenize takes a chat for one of the template.
type harmonyEngine struct {
	addr    netip.AddrPort
	date    atomic.Pointer[time.Time] // its clock
	renders atomic.Bool
	chats   atomic.Int32 // that /tokenize was asked about
}

func newHarmonyEngine(t *testing.T, dir string) *harmonyEngine {
	t.Helper()
	e := &harmonyEngine{}
	place, err := (&modelsource.Settings{}).Find(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	model, err := place.Load(modelsource.Options{
		Now: func() time.Time { return *e.date.Load() }, Release: func() chat.Release { return chat.Release{Minor: 32} },
	})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		talk := strings.Contains(string(body), `"messages"`)
		shape := map[bool]tokenizer.Shape{true: tokenizer.Chat, false: tokenizer.Completion}[talk]
		if r.URL.Path != "/tokenize" && (r.URL.Path != chatRender || !e.renders.Load()) {
			http.NotFound(w, r)
			return
		}
		res, err := model.Tokenize(r.Context(), tokenizer.Text{Shape: shape, Body: body})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if talk && r.URL.Path == "/tokenize" {
			e.chats.Add(1)
			res.IDs = res.IDs[1:]
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"token_ids": res.IDs, "tokens": res.IDs, "count": len(res.IDs)})
	}))
	t.Cleanup(s.Close)
	e.addr = netip.MustParseAddrPort(s.Listener.Addr().String())
	return e
}

// TestHarmonyParity: Harmony chats are compared with what an engine renders, though the
// date is in them, and never with what its /tokenize says. An engine with another date
// takes the claim away, as one with other ids does.
func TestHarmonyParity(t *testing.T) {
	dir := harmonyFolder(t)
	e := newHarmonyEngine(t, dir)
	// A zone where it is about noon, whose names count the hours to the west.
	zone, err := time.LoadLocation(fmt.Sprintf("Etc/GMT%+d", time.Now().UTC().Hour()-12))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().In(zone)
	e.date.Store(&now)
	e.renders.Store(true)
	f := newParityFleet(t)
	if _, err := f.Pods.Add(pod.Spec{Name: "pod-0", Address: e.addr.String(), Model: "base", Engine: pod.EngineVLLM, Release: "0.32.0"}, e.addr); err != nil {
		t.Fatal(err)
	}
	r := parityRigOf(newChainRigOver(t, f.Pods.Snapshot, Model{Tokenizer: Tokenizer{Source: dir, TimeZone: zone.String()}}, nil), f)
	if n := r.all(); n != 1 {
		t.Fatalf("%d rounds", n)
	}
	p, all := r.check.of("base"), len(parity.Probes())
	if p.String() != fmt.Sprintf("passed %d of %d", all, all) || e.chats.Load() != 0 {
		t.Errorf("%s %+v, /tokenize was asked about %d chats", p.String(), p, e.chats.Load())
	}
	a := r.ask(chatPath, hello)
	if a.Provider != byNative || a.Status != tokenizer.Exact || a.Doubtful {
		t.Errorf("%+v", a)
	}
	// The engine's clock is another one.
	then := now.Add(-48 * time.Hour)
	e.date.Store(&then)
	r.pass(2 * time.Hour)
	r.all()
	if p := r.check.of("base"); p.State != failed || p.Why != string(reason.ParityProbe) || p.Differed != 5 {
		t.Errorf("another date: %+v", p)
	}
	if a := r.ask(chatPath, hello); a.Provider != byRender || !strings.HasPrefix(tried(a), "native tokenizer-refuted") {
		t.Errorf("refuted: by %q, tried %s", a.Provider, tried(a))
	}
	// One that renders nothing tells of texts alone.
	e.renders.Store(false)
	r.pass(2 * time.Hour)
	r.all()
	if p := r.check.of("base"); p.State != passed || p.Skipped != 5 || e.chats.Load() != 0 {
		t.Errorf("no render: %+v, /tokenize was asked about %d chats", p, e.chats.Load())
	}
	if talk, text := r.ask(chatPath, hello).Status, r.ask(completionPath, helloText).Status; talk != tokenizer.Unverified || text != tokenizer.Exact {
		t.Errorf("no render: chats %v, texts %v", talk, text)
	}
}

// TestReleaseOfPods: prompts that differ by the engine's release are made only where all
// pods tell the same.
func TestReleaseOfPods(t *testing.T) {
	for name, c := range map[string]struct {
		pods []string
		want chat.Release
	}{
		"nobody":         {nil, chat.Release{}},
		"one":            {[]string{"0.32.0"}, chat.Release{Minor: 32}},
		"alike":          {[]string{"0.32.0", "0.32.1+cu130"}, chat.Release{Minor: 32}},
		"an upgrade":     {[]string{"0.30.0", "0.31.0"}, chat.Release{}},
		"one is silent":  {[]string{"0.32.0", ""}, chat.Release{}},
		"the first is":   {[]string{"", "0.32.0"}, chat.Release{}},
		"a preview":      {[]string{"0.31.0rc1"}, chat.Release{}},
		"of other words": {[]string{"main"}, chat.Release{}},
	} {
		table := pod.NewTable()
		for i, release := range c.pods {
			at := netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(8000+i))
			if _, err := table.Add(pod.Spec{Name: at.String(), Address: at.String(), Engine: pod.EngineVLLM, Model: "base", Ranks: 1, Release: release}, at); err != nil {
				t.Fatal(err)
			}
		}
		x := tokens{set: table.Snapshot}
		if got := x.releaseOf(&Model{Name: "base"})(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestHarmonyByRelease: a chat with a function's answer is encoded as the engines' release
// does, and left to others while that is not known.
func TestHarmonyByRelease(t *testing.T) {
	const body = `{"model":"sql","messages":[{"role":"user","content":"q"},{"role":"tool","tool_call_id":"1","content":"42"}]}`
	dir := harmonyFolder(t)
	seen := map[int]string{}
	for i, release := range []string{"0.30.0", "0.31.0", "0.32.0", "", "0.34.0"} {
		f := newParityFleet(t)
		at := netip.MustParseAddrPort("127.0.0.1:1") // nobody answers there
		if _, err := f.Pods.Add(pod.Spec{Name: "pod-0", Address: at.String(), Model: "base", Engine: pod.EngineVLLM, Release: release}, at); err != nil {
			t.Fatal(err)
		}
		r := newChainRigOver(t, f.Pods.Snapshot, Model{Tokenizer: Tokenizer{Source: dir, TimeZone: "UTC"}}, nil)
		a := r.ask(chatPath, body)
		seen[i] = fmt.Sprint(a.Provider, a.IDs)
		if known := i < 3; (a.Provider == byNative) != known || !known && a.Tried[0].Why != reason.Unrenderable {
			t.Errorf("%q: by %q, tried %s", release, a.Provider, tried(a))
		}
	}
	if seen[0] == seen[1] || seen[1] != seen[2] {
		t.Errorf("the ids by release: %v", seen)
	}
}
