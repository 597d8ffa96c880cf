package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// told is what an engine tells of itself over HTTP: the answers of one round of
// questions, or with learn those of all rounds. Empty fields are not told.
type told struct {
	engine  pod.Engine
	version string
	models  []servedModel
	events  []eventSource // per data-parallel rank

	aboutModels, aboutEvents question
}

// question is what came of asking for one thing.
type question struct {
	outcome outcome
	err     error // why it was not told
}

func asked(err error) question { return question{outcomeOf(err), err} }

var (
	errNoModel  = errors.New("no model is listed")
	errNoSource = errors.New("the engine has no way to tell")
)

// learn takes over what a new round told. What is known is replaced only by
// something told: an engine that restarts behind a sidecar answers 404, 500 or
// not at all for a moment, and is still the same engine.
func (t *told) learn(news told) {
	if news.engine != pod.EngineUnknown {
		if t.engine != pod.EngineUnknown && t.engine != news.engine {
			*t = told{} // another program: nothing known of the old one holds
		}
		t.engine = news.engine
	}
	if news.version != "" {
		t.version = news.version
	}
	if t.aboutModels.outcome <= news.aboutModels.outcome {
		t.models, t.aboutModels = news.models, news.aboutModels
	}
	if t.aboutEvents.outcome <= news.aboutEvents.outcome {
		t.events, t.aboutEvents = news.events, news.aboutEvents
	}
}

// final reports that asking again would tell nothing more, as long as the engine
// does not restart.
func (t *told) final(configured pod.Engine) bool {
	return t.aboutModels.outcome != failed && t.aboutEvents.outcome != failed &&
		(configured != pod.EngineUnknown || t.engine != pod.EngineUnknown)
}

// servedModel is an entry of /v1/models. One with a parent is a LoRA adapter.
type servedModel struct {
	ID          string  `json:"id"`
	OwnedBy     string  `json:"owned_by"`
	Parent      *string `json:"parent"`
	MaxModelLen int     `json:"max_model_len"`
}

// eventSource is the KV-event publisher of one rank, with endpoints as the
// engine holds them: ports already shifted by the rank, hosts unresolved.
type eventSource struct {
	on               bool
	endpoint, replay string
}

// askEngine asks the engine at base (http://host:port) for all it tells. An error
// means that nothing there speaks HTTP; single questions may have failed without
// one.
func askEngine(ctx context.Context, client *http.Client, base string, configured pod.Engine) (told, error) {
	var t told
	var list struct {
		Data []servedModel `json:"data"`
	}
	err := askJSON(ctx, client, base+"/v1/models", nil, &list)
	if !answered(err) {
		return t, err
	}
	t.models, t.aboutModels = list.Data, asked(err)
	if bases, _, _ := t.names(); err == nil && len(bases) == 0 {
		t.aboutModels = question{failed, errNoModel} // still loading
	}
	t.engine = ownerOf(t.models)
	as := t.engine
	if configured != pod.EngineUnknown {
		as = configured
	}
	switch as {
	case pod.EngineVLLM:
		t.vllm(ctx, client, base)
	case pod.EngineSGLang:
		t.sglang(ctx, client, base)
	case pod.EngineTRTLLM:
		t.aboutEvents = question{notOffered, errNoSource}
		t.version = versionAt(ctx, client, base+"/version")
	case pod.EngineTriton:
		t.triton(ctx, client, base)
	default:
		t.guess(ctx, client, base)
	}
	return t, nil
}

// ownerOf reads the engine off the model list.
func ownerOf(models []servedModel) pod.Engine {
	owners := map[string]pod.Engine{
		"vllm": pod.EngineVLLM, "sglang": pod.EngineSGLang,
		"tensorrt_llm": pod.EngineTRTLLM, "Triton Inference Server": pod.EngineTriton,
	}
	for _, m := range models {
		if e, ok := owners[m.OwnedBy]; ok {
			return e
		}
	}
	return pod.EngineUnknown
}

// guess asks for what only one engine answers.
func (t *told) guess(ctx context.Context, client *http.Client, base string) {
	var failure question
	for _, ask := range []func(context.Context, *http.Client, string){t.sglang, t.vllm, t.triton} {
		if ask(ctx, client, base); t.engine != pod.EngineUnknown {
			return
		}
		if t.aboutEvents.outcome == failed {
			failure = t.aboutEvents
		}
	}
	if failure.outcome == failed {
		t.aboutEvents = failure
	}
}

// vllm asks vLLM. /kv_event_sources is there since some release after 0.23.0,
// which answers 404.
func (t *told) vllm(ctx context.Context, client *http.Client, base string) {
	t.version = versionAt(ctx, client, base+"/version")
	var ranks map[string]struct {
		Enabled   bool   `json:"enable_kv_cache_events"`
		Publisher string `json:"publisher"`
		Endpoint  string `json:"endpoint"`
		Replay    string `json:"replay_endpoint"`
	}
	err := askJSON(ctx, client, base+"/kv_event_sources", nil, &ranks)
	if err == nil && !ranked(ranks) {
		err = fmt.Errorf("%w: no map by rank", errNotJSON)
	}
	if t.aboutEvents = asked(err); err != nil {
		return
	}
	t.engine = pod.EngineVLLM
	byRank := func(a, b string) int { x, _ := strconv.Atoi(a); y, _ := strconv.Atoi(b); return x - y }
	for _, rank := range slices.SortedFunc(maps.Keys(ranks), byRank) {
		r := ranks[rank]
		t.events = append(t.events, eventSource{r.Enabled && r.Publisher == "zmq", r.Endpoint, r.Replay})
	}
}

// ranked reports whether the keys of a map are numbers of ranks.
func ranked[V any](m map[string]V) bool {
	for key := range m {
		if n, err := strconv.Atoi(key); err != nil || n < 0 {
			return false
		}
	}
	return m != nil
}

// sglang asks SGLang: /server_info, in older releases /get_server_info, which
// has the settings but no kv_events block.
func (t *told) sglang(ctx context.Context, client *http.Client, base string) {
	var info struct {
		Version  string `json:"version"`
		PageSize *int   `json:"page_size"`
		DPSize   int    `json:"dp_size"`
		Config   string `json:"kv_events_config"`
		Events   *struct {
			Publisher  string `json:"publisher"`
			Host       string `json:"endpoint_host"`
			Port       int    `json:"endpoint_port_base"`
			DPSize     int    `json:"dp_size"`
			ReplayPort int    `json:"replay_endpoint_port_base"`
		} `json:"kv_events"`
	}
	err := askJSON(ctx, client, base+"/server_info", nil, &info)
	if outcomeOf(err) == notOffered {
		err = askJSON(ctx, client, base+"/get_server_info", nil, &info)
	}
	if err == nil && info.PageSize == nil && info.Events == nil {
		err = fmt.Errorf("%w: another server's", errNotJSON)
	}
	if t.aboutEvents = asked(err); err != nil {
		return
	}
	t.engine, t.version = pod.EngineSGLang, info.Version
	if e := info.Events; e != nil {
		for rank := range ranksOf(e.DPSize) {
			s := eventSource{on: e.Publisher == "zmq", endpoint: tcpEndpoint(e.Host, e.Port, rank)}
			if e.ReplayPort > 0 {
				s.replay = tcpEndpoint("*", e.ReplayPort, rank)
			}
			t.events = append(t.events, s)
		}
		return
	}
	var c struct {
		Publisher string `json:"publisher"`
		Endpoint  string `json:"endpoint"`
		Replay    string `json:"replay_endpoint"`
	}
	_ = json.Unmarshal([]byte(info.Config), &c) // "" or null: events are off
	for rank := range ranksOf(info.DPSize) {
		t.events = append(t.events, eventSource{c.Publisher == "zmq", shifted(c.Endpoint, rank), shifted(c.Replay, rank)})
	}
}

func (t *told) triton(ctx context.Context, client *http.Client, base string) {
	t.aboutEvents = question{notOffered, errNoSource}
	var meta struct{ Name, Version string }
	if askJSON(ctx, client, base+"/v2", nil, &meta) == nil && meta.Name != "" {
		t.engine, t.version = pod.EngineTriton, meta.Version
	}
}

func versionAt(ctx context.Context, client *http.Client, from string) string {
	var v struct{ Version string }
	if askJSON(ctx, client, from, nil, &v) != nil {
		return ""
	}
	return printable(v.Version, 40)
}

// ranksOf bounds a rank count that came from outside.
func ranksOf(n int) int { return min(max(n, 1), pod.MaxMembers) }

func tcpEndpoint(host string, port, rank int) string {
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(port+rank))
}
