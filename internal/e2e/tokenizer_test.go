package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/sim"
	"github.com/eppctl/eppctl/internal/testdata"
)

// told is the part of an explanation that says who told the token ids.
type told struct {
	card
	Tokens    int
	Tokenizer struct {
		Provider string
		Status   string
		Tried    []struct{ Provider, Reason string }
	}
}

// toldOf asks the picker's ring about a pick.
func (s *stack) toldOf(id string) (x told) {
	s.t.Helper()
	if err := json.Unmarshal(s.admin("GET", "/v1/explain/"+id, nil), &x); err != nil {
		s.t.Fatal(err)
	}
	return x
}

// loaded waits until the native tokenizer of the only model is.
func (s *stack) loaded() {
	s.t.Helper()
	eventually(s.t, func() error {
		var st struct {
			Tokenizers []struct {
				Model     string
				Providers []struct{ Name, State, Detail string }
			}
		}
		if err := json.Unmarshal(s.admin("GET", "/v1/state", nil), &st); err != nil {
			return err
		}
		for _, m := range st.Tokenizers {
			for _, p := range m.Providers {
				if m.Model == "sim" && p.Name == "native" && p.State == "ready" {
					return nil
				}
			}
		}
		return fmt.Errorf("not loaded: %+v", st.Tokenizers)
	})
}

// capturedChat is a chat that an engine was sent, and the ids it used.
type capturedChat struct {
	body []byte
	ids  []uint32
}

// capturedChats are chats of one capture that go apart behind a system prompt of 256
// tokens, which they share.
func capturedChats(t *testing.T) (list []capturedChat) {
	const trunk, apart = 256, 320
	t.Helper()
	f, err := os.Open(filepath.Join(testdata.Dirs(t, "engines")[0], "vllm-0.32.0", "llama", "requests.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := map[string]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var r struct {
			Path   string
			Body   json.RawMessage
			Status int
			IDs    []uint32 `json:"token_ids"`
		}
		if json.Unmarshal(lines.Bytes(), &r) != nil || r.Path != "/v1/chat/completions" || r.Status != 200 || len(r.IDs) < apart {
			continue
		}
		var model struct{ Model string }
		if err := json.Unmarshal(r.Body, &model); err != nil {
			t.Fatal(err)
		}
		first := fmt.Sprint(r.IDs[trunk:apart])
		body := strings.Replace(string(r.Body), `"`+model.Model+`"`, `"sim"`, 1)
		if seen[first] || body == string(r.Body) {
			continue
		}
		seen[first] = true
		list = append(list, capturedChat{[]byte(body), r.IDs})
	}
	if err := lines.Err(); err != nil || len(list) < 3 {
		t.Fatalf("%d chats, %v", len(list), err)
	}
	return list
}

// Chats that a real vLLM was sent reach the pod whose cache holds the ids that it
// used, with nobody to ask: the engines have no /tokenize.
func TestNativeIDsFindTheCache(t *testing.T) {
	folder, err := filepath.Abs(filepath.Join(testdata.Dirs(t, "engines")[0], "models", "tiny-llama"))
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, setup{fleet: sim.FleetOptions{Engines: 3, Engine: sim.EngineOptions{NoTokenize: true, Tokenizer: folder}}})
	s.loaded()
	const block = 32
	for i, c := range capturedChats(t) {
		e := s.Fleet.Engines[i%len(s.Fleet.Engines)]
		whole := c.ids[:len(c.ids)/block*block]
		fill(s, whole, e)
		id := fmt.Sprintf("native-%d", i)
		a := s.must(s.call(t.Context(), "POST", "/v1/chat/completions", c.body, "x-request-id", id))
		x := s.toldOf(id)
		if a.pod() != e.Name() || x.Tokenizer.Provider != "native" || x.Tokens != len(c.ids) {
			t.Errorf("chat %d went to %s, want %s; %d tokens by %+v, the engine used %d", i, a.pod(), e.Name(), x.Tokens, x.Tokenizer, len(c.ids))
		}
		for _, p := range x.Pods {
			if want := (len(c.ids) - 1) / block * block; p.Name == e.Name() && p.Match.Tokens != want {
				t.Errorf("chat %d: %d tokens cached, want %d", i, p.Match.Tokens, want)
			}
		}
	}
}

// A model whose chats the engine encodes in code of its own is asked about, and
// explain says why.
func TestRefusedNativelyIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		b, err := os.ReadFile(filepath.Join(testdata.Dirs(t, "engines")[0], "models", "tiny-llama", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type":"kimi_k3","architectures":["KimiK3ForConditionalGeneration"]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	s := start(t, setup{fleet: sim.FleetOptions{Engines: 3, Engine: sim.EngineOptions{Tokenizer: dir}}})
	s.loaded()
	body := chatBody(strings.Repeat("Engines keep what they have seen. ", 100))
	first := s.must(s.call(t.Context(), "POST", "/v1/chat/completions", body))
	s.quiet()
	a := s.must(s.call(t.Context(), "POST", "/v1/chat/completions", body, "x-request-id", "again"))
	x := s.toldOf("again")
	if a.pod() != first.pod() || a.usage.Details.Cached == 0 {
		t.Errorf("went to %s after %s, %d tokens cached", a.pod(), first.pod(), a.usage.Details.Cached)
	}
	if k := x.Tokenizer; k.Provider != "tokenize" || k.Status != "exact" || len(k.Tried) != 2 || k.Tried[0].Reason != "template-not-used" || k.Tried[1].Reason != "tokenizer-missing" {
		t.Errorf("%+v", k)
	}
}

func chatBody(text string) []byte {
	b, err := json.Marshal(map[string]any{"model": "sim", "max_tokens": 4, "messages": []any{map[string]string{"role": "user", "content": text}}})
	if err != nil {
		panic(err)
	}
	return b
}

// Without anybody to tell token ids, the turns of a conversation go where the turns
// before went, by their bytes, and what was taken for cached mostly is.
func TestBytesKeepConversationsTogether(t *testing.T) {
	s := start(t, setup{fleet: sim.FleetOptions{Engines: 4, Engine: sim.EngineOptions{NoTokenize: true}}, weights: "{delay: 0, beta: 0}"}) // the prefix alone decides
	work := sim.WorkloadOptions{Seed: 7, Conversations: 24, Turns: 5, Systems: 4, SystemWords: 600, UserWords: 60, Output: 12,
		Gap: 80 * time.Millisecond, Think: 150 * time.Millisecond, Model: "sim"}
	d := sim.Driver{URL: s.Proxy, Client: s.client, MaxInFlight: 32}
	pods := map[[2]int]string{}
	var outcomes []sim.Outcome
	for _, o := range d.Run(t.Context(), work.Draw()) {
		if o.Failed() {
			t.Fatalf("conversation %d turn %d: status %d, %v", o.Conversation, o.Turn, o.Status, o.Err)
		}
		pods[[2]int{o.Conversation, o.Turn}] = o.Pod
		outcomes = append(outcomes, o)
	}
	turns, stayed, prompt, cached := 0, 0, 0, 0
	for _, o := range outcomes {
		prompt, cached = prompt+o.Prompt, cached+o.Cached
		if prev, ok := pods[[2]int{o.Conversation, o.Turn - 1}]; ok {
			turns++
			if prev == o.Pod {
				stayed++
			}
		}
	}
	share, hits := float64(stayed)/float64(turns), float64(cached)/float64(prompt)
	var picks struct {
		Picks []struct {
			Tokens int
			Cached int `json:"cached_tokens"`
		}
	}
	if err := json.Unmarshal(s.admin("GET", "/v1/picks", nil), &picks); err != nil || len(picks.Picks) != len(outcomes) {
		t.Fatalf("%d picks of %d requests, %v", len(picks.Picks), len(outcomes), err)
	}
	of, near := 0, 0
	for _, p := range picks.Picks {
		of, near = of+p.Tokens, near+p.Cached
	}
	guessed := float64(near) / float64(of)
	t.Logf("%.3f of later turns stayed with their pod; %.3f of prompt tokens were cached, %.3f guessed", share, hits, guessed)
	if guessed < hits-0.2 || guessed > hits+0.05 { // the end of a prompt that fills no chunk is not guessed
		t.Errorf("guessed that %.3f of the prompts is cached, and %.3f is", guessed, hits)
	}
	if share < 0.7 {
		t.Errorf("%.3f of %d later turns stayed with their pod, by chance 0.25", share, turns)
	}
	var x told
	if err := json.Unmarshal(s.admin("POST", "/v1/explain?path=/v1/chat/completions", chatBody("hello")), &x); err != nil || x.Tokenizer.Provider != "" {
		t.Errorf("a short prompt: %+v %v", x.Tokenizer, err)
	}
}
