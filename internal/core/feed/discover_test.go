package feed

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/testdata"
)

// recorded is what a real engine answered to GET, by path.
type recorded map[string]struct {
	Status int    `json:"status"`
	Body   string `json:"body"`
}

// engineCapture is an engine.json: the answers beside the arguments the engine
// was started with, which tell what must be discovered.
type engineCapture struct {
	answers recorded
	args    []string
}

func readCapture(tb testing.TB, path string) engineCapture {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	c := engineCapture{answers: recorded{}}
	for key, raw := range all {
		if key == "args" {
			err = json.Unmarshal(raw, &c.args)
		}
		if strings.HasPrefix(key, "/") {
			a := c.answers[key]
			err = json.Unmarshal(raw, &a)
			c.answers[key] = a
		}
		if err != nil {
			tb.Fatalf("%s: %s: %v", path, key, err)
		}
	}
	return c
}

// arg returns the value of a command-line option, "" if it is not there.
func (c engineCapture) arg(name string) string {
	if i := slices.Index(c.args, name); i >= 0 && i+1 < len(c.args) {
		return c.args[i+1]
	}
	return ""
}

func (r recorded) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	a, ok := r[req.URL.Path]
	if !ok {
		http.NotFound(w, req)
		return
	}
	w.WriteHeader(a.Status)
	io.WriteString(w, a.Body)
}

func serve(t *testing.T, h http.Handler) (address string, client *http.Client) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://"), srv.Client()
}

func engineFiles(tb testing.TB) (paths []string) {
	tb.Helper()
	for _, dir := range testdata.Dirs(tb, "engines") {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "engine.json" {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	if len(paths) == 0 {
		tb.Fatal("no engine captures found")
	}
	return paths
}

// TestDiscoverCaptures asks every captured engine and compares with how it was
// started: a new capture needs no code.
func TestDiscoverCaptures(t *testing.T) {
	for _, path := range engineFiles(t) {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(path)))+"/"+filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			c := readCapture(t, path)
			address, client := serve(t, c.answers)
			spec, findings, err := discover(t.Context(), client, pod.Spec{Name: "p", Address: address, Ranks: 1})
			if err != nil {
				t.Fatal(err)
			}
			want, codes := expected(t, c, address)
			_, want.Release, _ = strings.Cut(filepath.Base(filepath.Dir(filepath.Dir(path))), "-") // of the folder's name
			if !reflect.DeepEqual(spec, want) {
				t.Errorf("discovered %+v\nwant       %+v", spec, want)
			}
			if got := codesOf(findings); !slices.Equal(got, codes) {
				t.Errorf("findings %v, want %q", findings, codes)
			}
		})
	}
}

// expected derives the result from the arguments (vLLM) or the settings that
// the engine repeats (SGLang), not from what askEngine reads.
func expected(t *testing.T, c engineCapture, address string) (want pod.Spec, codes []string) {
	t.Helper()
	var list struct {
		Data []struct {
			ID     string `json:"id"`
			Root   string `json:"root"`
			Parent string `json:"parent"`
			Len    int    `json:"max_model_len"`
		} `json:"data"`
	}
	var settings struct {
		Config string `json:"kv_events_config"`
	}
	decode(t, c.answers["/v1/models"].Body, &list)
	want = pod.Spec{Name: "p", Address: address, Ranks: 1, Metrics: "http://" + address + "/metrics"}
	for _, m := range list.Data {
		if m.Parent == "" {
			want.Model, want.MaxContext = m.ID, m.Len
		}
	}
	config := c.arg("--kv-events-config")
	if c.args != nil {
		want.Engine, want.Adapters = pod.EngineVLLM, []string{}
		fmt.Sscan(c.arg("--data-parallel-size"), &want.Ranks)
		for _, m := range list.Data {
			if m.Parent != "" {
				want.Adapters = append(want.Adapters, m.ID)
			}
		}
	} else {
		want.Engine = pod.EngineSGLang
		decode(t, c.answers["/server_info"].Body, &settings)
		config = settings.Config
	}
	var events struct {
		Endpoint string `json:"endpoint"`
		Replay   string `json:"replay_endpoint"`
	}
	decode(t, config, &events)
	if c.args != nil && c.answers["/kv_event_sources"].Status != 200 {
		want.Ranks = 1
		return want, []string{"no-event-source"}
	}
	for rank := range want.Ranks {
		var port, replay int
		if _, err := fmt.Sscanf(events.Replay, "tcp://*:%d", &replay); err == nil {
			want.Replay = append(want.Replay, fmt.Sprintf("tcp://127.0.0.1:%d", replay+rank))
		}
		if _, err := fmt.Sscanf(events.Endpoint, "tcp://*:%d", &port); err == nil {
			want.Events = append(want.Events, fmt.Sprintf("tcp://127.0.0.1:%d", port+rank))
		}
	}
	if want.Events == nil {
		codes = append(codes, "publisher-dials")
	}
	if want.Replay == nil {
		codes = append(codes, "no-replay")
	}
	return want, codes
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
}

func codesOf(findings []Finding) (codes []string) {
	for _, f := range findings {
		codes = append(codes, f.Code)
	}
	return codes
}

// engineAnswers copies a capture's answers so that a case may change some.
func engineAnswers(t *testing.T, version, name string) recorded {
	t.Helper()
	return maps.Clone(readCapture(t, filepath.Join(testdata.Dirs(t, "engines")[0], version, name, "engine.json")).answers)
}

func (r recorded) with(path string, status int, body string) recorded {
	a := r[path]
	a.Status, a.Body = status, body
	r[path] = a
	return r
}

// TestDiscoverContradictions: what is configured stays, and is reported.
func TestDiscoverContradictions(t *testing.T) {
	llama, dp2 := engineAnswers(t, "vllm-0.32.0", "llama"), engineAnswers(t, "vllm-0.32.0", "dp2")
	dialin, sglang := engineAnswers(t, "vllm-0.32.0", "dialin"), engineAnswers(t, "sglang-0.5.23", "llama")
	const models = `{"data":[{"id":"tiny","owned_by":"vllm","parent":null,"max_model_len":2048},
		{"id":"alias","owned_by":"vllm","parent":null,"max_model_len":2048},
		{"id":"sql","owned_by":"vllm","parent":"tiny"}]}`
	for _, c := range []struct {
		name    string
		answers recorded
		spec    pod.Spec
		codes   []string
		check   func(s pod.Spec) bool
	}{
		{"another engine", llama, pod.Spec{Engine: pod.EngineSGLang}, []string{"engine-differs", "no-event-source"},
			func(s pod.Spec) bool { return s.Engine == pod.EngineSGLang }},
		{"another model", llama, pod.Spec{Model: "big"}, []string{"model-not-served"}, func(s pod.Spec) bool { return s.Model == "big" }},
		{"names and adapters", maps.Clone(llama).with("/v1/models", 200, models), pod.Spec{}, []string{"more-names"},
			func(s pod.Spec) bool { return s.Model == "tiny" && slices.Equal(s.Adapters, []string{"sql"}) }},
		{"an adapter too many", maps.Clone(llama).with("/v1/models", 200, models), pod.Spec{Model: "alias", Adapters: []string{"sql", "legal"}},
			[]string{"adapter-not-loaded"}, func(s pod.Spec) bool { return len(s.Adapters) == 2 && s.Model == "alias" }},
		{"longer context", llama, pod.Spec{MaxContext: 4096}, []string{"max-context"}, func(s pod.Spec) bool { return s.MaxContext == 4096 }},
		{"shorter context is a choice", llama, pod.Spec{MaxContext: 1024}, nil, func(s pod.Spec) bool { return s.MaxContext == 1024 }},
		{"one rank of two", dp2, pod.Spec{Ranks: 1, Events: []string{"tcp://127.0.0.1:5557"}}, []string{"ranks-differ"},
			func(s pod.Spec) bool { return s.Ranks == 1 && len(s.Events) == 1 && len(s.Replay) == 0 }},
		{"ranks in order, from a map out of order", dp2, pod.Spec{}, nil, func(s pod.Spec) bool {
			return s.Ranks == 2 && slices.Equal(s.Events, []string{"tcp://127.0.0.1:5557", "tcp://127.0.0.1:5558"})
		}},
		{"another port", llama, pod.Spec{Events: []string{"tcp://127.0.0.1:6000"}}, []string{"events-differ"},
			func(s pod.Spec) bool { return s.Events[0] == "tcp://127.0.0.1:6000" }},
		{"another name of the host", llama, pod.Spec{Events: []string{"tcp://pod-1.example:5557"}}, nil,
			func(s pod.Spec) bool { return s.Events[0] == "tcp://pod-1.example:5557" }},
		{"dialled, but it dials", dialin, pod.Spec{Events: []string{"tcp://127.0.0.1:5557"}}, []string{"publisher-dials"}, nil},
		{"waited for, and it dials", dialin, pod.Spec{Bind: "tcp://127.0.0.1:5557"}, nil,
			func(s pod.Spec) bool { return s.Events == nil && len(s.Replay) == 1 }},
		{"waited for, but it listens", llama, pod.Spec{Bind: "tcp://127.0.0.1:5557"}, []string{"publisher-listens"},
			func(s pod.Spec) bool { return s.Events == nil }},
		{"events are off", maps.Clone(llama).with("/kv_event_sources", 200, `{"0":{"enable_kv_cache_events":false,"publisher":"null"}}`),
			pod.Spec{}, []string{"events-off"}, func(s pod.Spec) bool { return s.Events == nil }},
		{"no replay", maps.Clone(llama).with("/kv_event_sources", 200,
			`{"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":null}}`),
			pod.Spec{}, []string{"no-replay"}, func(s pod.Spec) bool { return len(s.Events) == 1 && s.Replay == nil }},
		{"local socket", maps.Clone(llama).with("/kv_event_sources", 200,
			`{"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"ipc:///tmp/x","replay_endpoint":"tcp://*:5657"}}`),
			pod.Spec{}, []string{"events-unreachable"}, func(s pod.Spec) bool { return s.Events == nil }},
		{"render server", maps.Clone(llama).with("/kv_event_sources", 200, `{}`), pod.Spec{}, nil, func(s pod.Spec) bool { return s.Events == nil }},
		{"garbage", recorded{}.with("/v1/models", 200, `{"data":"x"}`).with("/kv_event_sources", 200, `[]`), pod.Spec{},
			[]string{"engine-unknown", "no-event-source"}, nil},
		{"SGLang of before the kv_events block", maps.Clone(sglang).with("/server_info", 404, "").with("/get_server_info", 200,
			`{"page_size":16,"dp_size":2,"version":"0.5.0","kv_events_config":"{\"publisher\":\"zmq\",\"endpoint\":\"tcp://*:5577\"}"}`),
			pod.Spec{}, []string{"no-replay"}, func(s pod.Spec) bool {
				return s.Ranks == 2 && slices.Equal(s.Events, []string{"tcp://127.0.0.1:5577", "tcp://127.0.0.1:5578"})
			}},
		{"SGLang without events", maps.Clone(sglang).with("/server_info", 200, `{"page_size":16,"kv_events_config":null,"kv_events":null}`),
			pod.Spec{}, []string{"events-off"}, nil},
		{"Triton", recorded{}.with("/v2", 200, `{"name":"triton","version":"2.60.0"}`), pod.Spec{}, []string{"no-event-source"},
			func(s pod.Spec) bool {
				return s.Engine == pod.EngineTriton && s.Metrics == "http://127.0.0.1:8002/metrics"
			}},
		{"trtllm-serve", recorded{}.with("/v1/models", 200, `{"data":[{"id":"m","owned_by":"tensorrt_llm"}]}`), pod.Spec{}, []string{"no-event-source"},
			func(s pod.Spec) bool { return strings.HasSuffix(s.Metrics, "/prometheus/metrics") }},
		{"metrics elsewhere", llama, pod.Spec{Metrics: "http://other/metrics"}, nil, func(s pod.Spec) bool { return s.Metrics == "http://other/metrics" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			address, client := serve(t, c.answers)
			c.spec.Name, c.spec.Address = "p", address
			c.spec.Ranks = max(c.spec.Ranks, 1)
			got, findings, err := discover(t.Context(), client, c.spec)
			if err != nil {
				t.Fatal(err)
			}
			if codes := codesOf(findings); !slices.Equal(codes, c.codes) {
				t.Errorf("findings %q, want %q", codes, c.codes)
			}
			for _, f := range findings {
				if f.Pod != "p" || f.Severity == "" || f.String() == "" {
					t.Errorf("finding %+v", f)
				}
			}
			if c.check != nil && !c.check(got) {
				t.Errorf("spec %+v", got)
			}
		})
	}
}

func TestMetricsURL(t *testing.T) {
	for _, c := range []struct {
		engine              pod.Engine
		address, host, want string
	}{
		{pod.EngineVLLM, "10.0.0.1:8000", "10.0.0.1", "http://10.0.0.1:8000/metrics"},
		{pod.EngineUnknown, "[fd00::1]:8000", "fd00::1", "http://[fd00::1]:8000/metrics"},
		{pod.EngineSGLang, "[fd00::1]:30000", "fd00::1", "http://[fd00::1]:30000/metrics"},
		{pod.EngineTriton, "[fd00::1]:8000", "fd00::1", "http://[fd00::1]:8002/metrics"},
		{pod.EngineTRTLLM, "[fd00::1]:8000", "fd00::1", "http://[fd00::1]:8000/prometheus/metrics"},
	} {
		if got := metricsURL(c.engine, c.address, c.host); got != c.want {
			t.Errorf("%s at %s: %s, want %s", c.engine, c.address, got, c.want)
		}
	}
}

func TestDiscoverNobodyThere(t *testing.T) {
	spec := pod.Spec{Name: "p", Address: testdata.Deaf(t), Ranks: 1, Model: "m"}
	got, findings, err := discover(t.Context(), &http.Client{}, spec)
	if err == nil || findings != nil || !reflect.DeepEqual(got, spec) {
		t.Errorf("%+v, %v, %v", got, findings, err)
	}
}

// FuzzDiscover answers every question with the same bytes. Seeds are the
// answers of real engines.
func FuzzDiscover(f *testing.F) {
	for _, path := range engineFiles(f) {
		for _, a := range readCapture(f, path).answers {
			f.Add([]byte(a.Body), byte(0))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, engine byte) {
		client := &http.Client{Transport: roundTrip(func(*http.Request) *http.Response {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(body)))}
		})}
		spec := pod.Spec{Name: "p", Address: "[2001:db8::1]:8000", Engine: pod.Engine(engine % 5), Ranks: 1, Model: "m", MaxContext: 7}
		got, _, err := discover(t.Context(), client, spec)
		if err != nil {
			t.Fatalf("an answer passed for none: %v", err)
		}
		if got.Model != "m" || got.MaxContext != 7 || (spec.Engine != 0 && got.Engine != spec.Engine) {
			t.Errorf("the configuration was changed: %+v", got)
		}
		if got.Ranks < 1 || got.Ranks > pod.MaxMembers || len(got.Events) > got.Ranks || len(got.Replay) > got.Ranks {
			t.Errorf("ranks: %+v", got)
		}
		for _, e := range append(got.Events, got.Replay...) {
			if _, err := tcpAddress(e); err != nil {
				t.Error(err)
			}
		}
	})
}

type roundTrip func(*http.Request) *http.Response

func (r roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return r(req), nil }

func TestDialTo(t *testing.T) {
	for _, c := range []struct{ endpoint, podHost, want string }{
		{"tcp://*:5558", "10.0.0.7", "tcp://10.0.0.7:5558"},
		{"tcp://*:5558", "2001:db8::1", "tcp://[2001:db8::1]:5558"},
		{"tcp://[::]:5558", "pod-1", "tcp://pod-1:5558"},
		{"tcp://:::5558", "pod-1", "tcp://pod-1:5558"},
		{"tcp://0.0.0.0:5558", "pod-1", "tcp://pod-1:5558"},
		{"tcp://10.1.2.3:5558", "10.0.0.7", "tcp://10.1.2.3:5558"},
		{"tcp://127.0.0.1:5558", "localhost", "tcp://127.0.0.1:5558"},
		{"tcp://[::1]:5558", "10.0.0.7", ""},
		{"tcp://*:0", "h", ""}, {"tcp://*:70000", "h", ""}, {"tcp://*", "h", ""}, {"ipc:///x", "h", ""}, {"", "h", ""},
	} {
		if got, err := dialTo(c.endpoint, c.podHost); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s on %s: %q, %v, want %q", c.endpoint, c.podHost, got, err, c.want)
		}
	}
}

func TestPublisherBinds(t *testing.T) {
	for _, c := range []struct {
		endpoint     string
		vllm, sglang bool
	}{
		{"tcp://*:5557", true, true}, {"tcp://[::]:5557", true, true}, {"ipc:///x", true, true},
		{"tcp://0.0.0.0:5557", false, true}, {"tcp://epp:5557", false, false}, {"tcp://127.0.0.1:5557", false, false},
	} {
		if v, s := publisherBinds(c.endpoint, pod.EngineVLLM), publisherBinds(c.endpoint, pod.EngineSGLang); v != c.vllm || s != c.sglang {
			t.Errorf("%s: vllm %v, sglang %v", c.endpoint, v, s)
		}
	}
}

// discover is one round of questions to the engine of a pod, and what they make of
// its spec.
func discover(ctx context.Context, client *http.Client, spec pod.Spec) (pod.Spec, []Finding, error) {
	t, err := askEngine(ctx, client, "http://"+spec.Address, spec.Engine)
	if err != nil {
		return spec, nil, err
	}
	full, findings := complete(spec, t)
	return full, findings, nil
}
