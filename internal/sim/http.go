package sim

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// maxBody bounds a request body: 8 MB holds a prompt of 2 M tokens.
const maxBody = 8 << 20

// Headers that only the simulator has.
const (
	// ServedBy is the response header in which an engine names itself.
	ServedBy = "x-served-by"
	// EchoDigest in a request asks for BodyDigest and BodyLength in the response:
	// the SHA-256 of the body as it arrived, and its Content-Length (-1 = chunked).
	EchoDigest = "x-sim-echo-digest"
	BodyDigest = "x-sim-body-sha256"
	BodyLength = "x-sim-body-length"
	// SeenTarget is what the engine saw in the picker's destination header.
	SeenTarget = "x-sim-seen-target"
)

func (e *Engine) handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("POST /v1/completions", e.serveCompletion)
	m.HandleFunc("POST /v1/chat/completions", e.serveCompletion)
	if !e.opt.NoTokenize {
		m.HandleFunc("POST /tokenize", e.serveTokenize)
	}
	m.HandleFunc("GET /v1/models", e.serveModels)
	m.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	m.HandleFunc("GET /metrics", e.serveMetrics)
	if e.opt.Kind == pod.EngineSGLang {
		m.HandleFunc("GET /server_info", e.serveServerInfo)
		m.HandleFunc("POST /flush_cache", e.serveReset)
	} else {
		m.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusOK, map[string]string{"version": "0.32.0"})
		})
		m.HandleFunc("GET /kv_event_sources", e.serveEventSources)
		m.HandleFunc("POST /reset_prefix_cache", e.serveReset)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		gate := e.stalled
		e.mu.Unlock()
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		case <-e.ctx.Done():
			return
		}
		w.Header().Set(ServedBy, e.opt.Name)
		m.ServeHTTP(w, r)
	})
}

func (e *Engine) read(w http.ResponseWriter, r *http.Request) (*request, []uint32, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "body: "+err.Error())
		return nil, nil, false
	}
	if r.Header.Get(EchoDigest) != "" {
		w.Header().Set(BodyDigest, fmt.Sprintf("%x", sha256.Sum256(body)))
		w.Header().Set(BodyLength, fmt.Sprint(r.ContentLength))
		w.Header().Set(SeenTarget, r.Header.Get("x-gateway-destination-endpoint"))
	}
	var q request
	if err := json.Unmarshal(body, &q); err != nil {
		refuse(w, http.StatusBadRequest, "body: "+err.Error())
		return nil, nil, false
	}
	if q.Model != "" && q.Model != e.opt.Model && !slices.Contains(e.opt.Adapters, q.Model) {
		refuse(w, http.StatusNotFound, fmt.Sprintf("The model `%s` does not exist.", q.Model))
		return nil, nil, false
	}
	ids, err := e.tokens(r.Context(), &q, body)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return nil, nil, false
	}
	return &q, ids, true
}

func (e *Engine) serveTokenize(w http.ResponseWriter, r *http.Request) {
	if _, ids, ok := e.read(w, r); ok {
		reply(w, http.StatusOK, map[string]any{"count": len(ids), "max_model_len": e.opt.MaxModelLen, "tokens": ids})
	}
}

func (e *Engine) serveModels(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID      string  `json:"id"`
		Object  string  `json:"object"`
		Created int64   `json:"created"`
		OwnedBy string  `json:"owned_by"`
		Root    string  `json:"root"`
		Parent  *string `json:"parent"`
		MaxLen  int     `json:"max_model_len,omitempty"`
	}
	owner := e.opt.Kind.String()
	list := []model{{e.opt.Model, "model", e.started.Unix(), owner, e.opt.Model, nil, e.opt.MaxModelLen}}
	for _, a := range e.opt.Adapters {
		list = append(list, model{a, "model", e.started.Unix(), owner, "adapters/" + a, &e.opt.Model, 0})
	}
	reply(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

// serveEventSources tells of the event sockets as vLLM 0.32.0 does.
func (e *Engine) serveEventSources(w http.ResponseWriter, _ *http.Request) {
	if e.pub == nil {
		reply(w, http.StatusOK, map[string]any{})
		return
	}
	endpoint := "tcp://*:" + port(e.pub.live.Addr())
	if e.opt.EventsTo != "" {
		endpoint = "tcp://" + e.opt.EventsTo
	}
	reply(w, http.StatusOK, map[string]any{"0": map[string]any{
		"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": endpoint,
		"replay_endpoint": "tcp://*:" + port(e.pub.replay.Addr()), "buffer_steps": 10000,
		"hwm": 100000, "max_queue_size": 100000, "topic": e.pub.topic,
	}})
}

// serveServerInfo tells of the event sockets as SGLang 0.5.23 does.
func (e *Engine) serveServerInfo(w http.ResponseWriter, _ *http.Request) {
	info := map[string]any{"max_total_num_tokens": e.opt.Blocks * e.opt.BlockSize, "page_size": e.opt.BlockSize,
		"served_model_name": e.opt.Model, "version": "0.5.23"}
	if e.pub != nil {
		info["kv_events"] = map[string]any{"publisher": "zmq", "endpoint_host": "*",
			"endpoint_port_base": json.Number(port(e.pub.live.Addr())), "topic": e.pub.topic,
			"block_size": e.opt.BlockSize, "dp_size": 1,
			"replay_endpoint_port_base": json.Number(port(e.pub.replay.Addr()))}
	}
	reply(w, http.StatusOK, info)
}

func (e *Engine) serveReset(w http.ResponseWriter, _ *http.Request) {
	e.mu.Lock()
	ok := e.sched.reset()
	var events []kvEvent
	if ok && e.sched.sglang { // vLLM keeps the event until its next step
		events, e.sched.events = e.sched.events, nil
	}
	e.mu.Unlock()
	e.publish(events)
	reply(w, http.StatusOK, map[string]bool{"success": ok})
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

// refuse answers with the error body of vLLM.
func refuse(w http.ResponseWriter, status int, message string) {
	kind := strings.ReplaceAll(http.StatusText(status), " ", "") + "Error"
	reply(w, status, map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": status}})
}

// exchange is one completion request inside the engine.
type exchange struct {
	id    string // x-request-id
	begun bool   // response headers are out; guarded by Engine.mu
	start time.Time
	seq   *sequence
}
