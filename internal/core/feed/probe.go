package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-zeromq/zmq4"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// Fact is one thing a probe found out about a pod.
type Fact struct {
	Pod    string `json:"pod"`
	What   string `json:"what"` // http, engine, model, metrics, events, replay, tokenize
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

func (f Fact) String() string {
	mark := "ok  "
	if !f.OK {
		mark = "FAIL"
	}
	return fmt.Sprintf("%s  %s  %-8s  %s", mark, f.Pod, f.What, f.Detail)
}

// Prober checks pods from outside. The zero value uses http.DefaultClient and
// a real ZMTP handshake.
type Prober struct {
	Client *http.Client
	// Port connects to a ZeroMQ endpoint as a socket of this kind ("SUB",
	// "DEALER") and says what it met; nil = do it.
	Port func(ctx context.Context, endpoint, kind string) (detail string, err error)
}

// Probe asks everything a pod has a port for, one Fact each, and returns what
// Discover finds on the way. It sends no prompt but the word "probe".
func (p *Prober) Probe(ctx context.Context, spec pod.Spec) ([]Fact, []Finding) {
	r := probe{Prober: *p, ctx: ctx, name: spec.Name}
	if r.Client == nil {
		r.Client = http.DefaultClient
	}
	if r.Port == nil {
		r.Port = shakeHands
	}
	t, err := askEngine(ctx, r.Client, "http://"+spec.Address, spec.Engine)
	r.fact("http", err, spec.Address+" answers")
	var findings []Finding
	if err == nil {
		spec, findings = complete(spec, t)
		r.engine(spec, t)
		r.model(spec, t)
	}
	if spec.Metrics != "" {
		r.metrics(spec)
	}
	r.ports(spec)
	if err == nil {
		r.tokenize(spec)
	}
	return r.facts, findings
}

// probe is one run over one pod.
type probe struct {
	Prober
	ctx   context.Context //nolint:containedctx // lives for one call of Probe
	name  string
	facts []Fact
}

// fact notes detail, or the error instead.
func (r *probe) fact(what string, err error, detail string) {
	if err != nil {
		detail = printable(err.Error(), 200)
	}
	r.facts = append(r.facts, Fact{r.name, what, err == nil, detail})
}

func (r *probe) engine(spec pod.Spec, t told) {
	detail := spec.Engine.String()
	if t.version != "" {
		detail += " " + t.version
	}
	r.facts = append(r.facts, Fact{r.name, "engine", spec.Engine != pod.EngineUnknown, detail})
}

func (r *probe) model(spec pod.Spec, t told) {
	if len(t.models) == 0 {
		r.facts = append(r.facts, Fact{r.name, "model", false, "no model is listed"})
		return
	}
	served := false
	for _, m := range t.models {
		served = served || m.ID == spec.Model
	}
	detail := fmt.Sprintf("%s, %d adapters, context %d", spec.Model, len(spec.Adapters), spec.MaxContext)
	if !served {
		detail = fmt.Sprintf("%s is not served", spec.Model)
	}
	r.facts = append(r.facts, Fact{r.name, "model", served, detail})
}

func (r *probe) metrics(spec pod.Spec) {
	var buf bytes.Buffer
	ctx, cancel := context.WithTimeout(r.ctx, answerTimeout)
	defer cancel()
	page, err := fetchPage(ctx, r.Client, spec.Metrics, 0, &buf)
	if err != nil {
		r.fact("metrics", fmt.Errorf("%s: %w", spec.Metrics, err), "")
		return
	}
	s, err := telemetry.Parse(page, telemetry.ParseOptions{Engine: spec.Engine, Model: spec.Model})
	if err != nil {
		r.fact("metrics", fmt.Errorf("%s: %w", spec.Metrics, err), "")
		return
	}
	r.fact("metrics", nil, fmt.Sprintf("%s: running %s, waiting %s, KV %s", spec.Metrics, shown(s.Running), shown(s.Waiting), shown(s.KVUsage)))
}

func shown(v telemetry.Value) string {
	if !v.Known {
		return "?"
	}
	return strconv.FormatFloat(v.V, 'g', 4, 64)
}

// ports shakes hands with every event and replay port.
func (r *probe) ports(spec pod.Spec) {
	if len(spec.Events) == 0 {
		detail := "no event endpoint is known: routed to by load alone"
		if spec.Bind != "" {
			detail = "the engine dials " + spec.Bind
		}
		r.facts = append(r.facts, Fact{r.name, "events", spec.Bind != "", detail})
	}
	for rank, e := range spec.Events {
		r.port("events", rank, e, "SUB")
	}
	for rank, e := range spec.Replay {
		r.port("replay", rank, e, "DEALER")
	}
}

func (r *probe) port(what string, rank int, endpoint, kind string) {
	detail, err := r.Port(r.ctx, endpoint, kind)
	if err != nil {
		err = fmt.Errorf("rank %d %s: %w", rank, endpoint, err)
	}
	r.fact(what, err, fmt.Sprintf("rank %d %s: %s", rank, endpoint, detail))
}

// shakeHands opens a ZMTP connection and closes it again.
func shakeHands(ctx context.Context, endpoint, kind string) (string, error) {
	l, err := dialer{}.dial(ctx, endpoint, zmq4.SocketType(kind))
	if err != nil {
		return "", err
	}
	defer l.Close()
	major, minor := l.Peer()
	return fmt.Sprintf("ZMTP %d.%d", major, minor), nil
}

// tokenize asks for the token ids of one word, as a text prompt needs it.
func (r *probe) tokenize(spec pod.Spec) {
	if spec.Engine != pod.EngineVLLM && spec.Engine != pod.EngineSGLang {
		return // the others have no such endpoint
	}
	body, _ := json.Marshal(map[string]string{"model": spec.Model, "prompt": "probe"})
	var answer struct {
		Tokens []int `json:"tokens"`
	}
	err := askJSON(r.ctx, r.Client, "http://"+spec.Address+"/tokenize", body, &answer)
	if err == nil && len(answer.Tokens) == 0 {
		err = fmt.Errorf("%w: no tokens", errNotJSON)
	}
	r.fact("tokenize", err, fmt.Sprintf("1 word is %d tokens", len(answer.Tokens)))
}
