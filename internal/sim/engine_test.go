package sim

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/eppctl/eppctl/internal/core/pod"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { http.DefaultClient.CloseIdleConnections() }))
}

func start(t *testing.T, o EngineOptions) *Engine {
	t.Helper()
	o.Speedup = 20
	e, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return e
}

func post(t *testing.T, url string, body any) (int, []byte) {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url, "application/json", bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, out
}

func TestCompletionCountsCachedTokens(t *testing.T) {
	for _, kind := range []pod.Engine{pod.EngineVLLM, pod.EngineSGLang} {
		t.Run(kind.String(), func(t *testing.T) {
			e := start(t, EngineOptions{Kind: kind, BlockSize: 16})
			body := map[string]any{"model": "sim", "prompt": sequenceOf(100), "max_tokens": 4}
			for i, want := range []int{0, 96} {
				status, out := post(t, e.URL()+"/v1/completions", body)
				var r struct {
					Usage   Usage
					Choices []struct{ Text string }
				}
				if err := json.Unmarshal(out, &r); status != 200 || err != nil {
					t.Fatalf("status %d: %s", status, out)
				}
				if r.Usage.Prompt != 100 || r.Usage.Output != 4 || r.Usage.Details.Cached != want {
					t.Errorf("request %d: usage %+v, want 100, 4, cached %d", i, r.Usage, want)
				}
				if n := len(encode(nil, r.Choices[0].Text)); n != 4 {
					t.Errorf("the answer %q is %d tokens, want 4", r.Choices[0].Text, n)
				}
			}
		})
	}
}

// A conversation's next turn hits everything the turn before computed, its
// answer included.
func TestDriverReusesAnswers(t *testing.T) {
	e := start(t, EngineOptions{BlockSize: 8})
	w := WorkloadOptions{Seed: 1, Conversations: 3, Turns: 4, Systems: 1, SystemWords: 60, UserWords: 10, Output: 12, Model: "sim"}
	last := map[int]Outcome{}
	outcomes := (&Driver{URL: e.URL(), MaxInFlight: 1}).Run(t.Context(), w.Draw())
	if len(outcomes) != 12 {
		t.Fatalf("%d outcomes, want 12", len(outcomes))
	}
	for _, o := range outcomes {
		if o.Failed() {
			t.Fatalf("turn failed: %+v", o)
		}
		if prev, ok := last[o.Conversation]; ok {
			// The last token of an answer has no KV.
			if want := (prev.Prompt + prev.Output - 1) / 8 * 8; o.Cached < want {
				t.Errorf("conversation %d turn %d: %d cached, want %d", o.Conversation, o.Turn, o.Cached, want)
			}
		}
		if o.TTFT <= 0 || o.Latency < o.TTFT || o.Pod != e.Name() {
			t.Errorf("outcome %+v", o)
		}
		last[o.Conversation] = o
	}
}

func TestTokenizeEqualsTheEngine(t *testing.T) {
	e := start(t, EngineOptions{})
	chat := map[string]any{"model": "sim", "messages": []chatMessage{{"system", "Be brief, please."}, {"user", "Wie heißt  du?\n"}}}
	status, out := post(t, e.URL()+"/tokenize", chat)
	var tok struct {
		Count  int
		Tokens []uint32
	}
	if err := json.Unmarshal(out, &tok); status != 200 || err != nil {
		t.Fatalf("status %d: %s", status, out)
	}
	chat["max_tokens"] = 1
	_, out = post(t, e.URL()+"/v1/chat/completions", chat)
	var r struct{ Usage Usage }
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	if tok.Count == 0 || tok.Count != len(tok.Tokens) || r.Usage.Prompt != tok.Count {
		t.Errorf("tokenize says %d, the engine %d", tok.Count, r.Usage.Prompt)
	}
}

func TestEncodeJoinsAtWordBorders(t *testing.T) {
	a, b := "Hello there, friend", " how are you? 漢字 ok"
	whole := encode(nil, a+b)
	if parts := encode(encode(nil, a), b); len(parts) != len(whole) {
		t.Errorf("%d tokens apart, %d together", len(parts), len(whole))
	}
	for _, w := range answerWords {
		if n := len(encode(nil, " "+w)); n != 1 {
			t.Errorf("%q is %d tokens", w, n)
		}
	}
}

func TestMetricsShowQueueAndAdapters(t *testing.T) {
	prof := H100x2
	prof.MaxRunning = 2
	e := start(t, EngineOptions{Profile: prof, Adapters: []string{"sql", "legal"}, MaxAdapters: 2})
	e.SetSlow(1000)
	for range 5 {
		body, _ := json.Marshal(map[string]any{"model": "sql", "prompt": sequenceOf(50), "max_tokens": 4})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.URL()+"/v1/completions", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		}()
	}
	want := []string{
		`vllm:num_requests_running{engine="0",model_name="sim"} 2`,
		`vllm:num_requests_waiting{engine="0",model_name="sim"} 3`,
		`running_lora_adapters="sql",waiting_lora_adapters="sql"`,
		`num_gpu_blocks="8812"`,
	}
	var page string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		page = get(t, e.URL()+"/metrics")
		if strings.Contains(page, want[0]) && strings.Contains(page, want[1]) {
			break
		}
	}
	for _, w := range want {
		if !strings.Contains(page, w) {
			t.Errorf("the page lacks %s\n%s", w, page)
		}
	}
	if begun, accepted := e.Kill(); len(begun) != 0 || len(accepted) != 5 {
		t.Errorf("killed with %d begun, %d accepted, want 0 and 5", len(begun), len(accepted))
	}
	if _, err := http.Get(e.URL() + "/health"); err == nil {
		t.Error("a killed engine answers")
	}
	again := start(t, e.Options())
	if again.Addr() != e.Addr() || again.EventsEndpoint() != e.EventsEndpoint() {
		t.Error("a restarted engine has other ports")
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
