package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
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
	// Skipped marks what could not be asked for, because the pod does not answer
	// at all; such a fact is neither good nor bad.
	Skipped bool `json:"skipped,omitempty"`
	// Models and Adapters are the names of /v1/models, in the fact "model".
	Models   []string `json:"models,omitempty"`
	Adapters []string `json:"adapters,omitempty"`
}

func (f Fact) String() string {
	mark := "ok  "
	if f.Skipped {
		mark = "skip"
	} else if !f.OK {
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
	if err != nil {
		r.rest(spec)
		return r.facts, nil
	}
	spec, findings = complete(spec, t)
	r.engine(spec, t)
	r.model(spec, t)
	r.metrics(spec)
	r.events(spec)
	r.replay(spec)
	r.tokenize(spec)
	return r.facts, findings
}

// probe is one run over one pod.
type probe struct {
	Prober
	ctx   context.Context //nolint:containedctx // lives for one call of Probe
	name  string
	facts []Fact
}

// rest is what there is to ask of a pod that does not answer: the ports that are
// configured. Of the others nothing is known.
func (r *probe) rest(spec pod.Spec) {
	skip := func(what string) {
		r.facts = append(r.facts, Fact{Pod: r.name, What: what, Skipped: true, Detail: "not asked: the pod does not answer"})
	}
	skip("engine")
	skip("model")
	if spec.Metrics != "" {
		r.metrics(spec)
	} else {
		skip("metrics")
	}
	if len(spec.Events) > 0 || spec.Bind != "" {
		r.events(spec)
	} else {
		skip("events")
	}
	r.replay(spec)
	skip("tokenize")
}

// fact notes detail, or the error instead.
func (r *probe) fact(what string, err error, detail string) {
	if err != nil {
		detail = printable(err.Error(), 200)
	}
	r.facts = append(r.facts, Fact{Pod: r.name, What: what, OK: err == nil, Detail: detail})
}

func (r *probe) engine(spec pod.Spec, t told) {
	detail := spec.Engine.String()
	if t.version != "" {
		detail += " " + t.version
	}
	r.facts = append(r.facts, Fact{Pod: r.name, What: "engine", OK: spec.Engine != pod.EngineUnknown, Detail: detail})
}

func (r *probe) model(spec pod.Spec, t told) {
	if len(t.models) == 0 {
		r.facts = append(r.facts, Fact{Pod: r.name, What: "model", Detail: "no model is listed"})
		return
	}
	bases, adapters, _ := t.names()
	f := Fact{Pod: r.name, What: "model", Models: bases, Adapters: adapters}
	f.OK = slices.Contains(bases, spec.Model) || slices.Contains(adapters, spec.Model)
	switch {
	case !f.OK:
		f.Detail = fmt.Sprintf("%s is not served", spec.Model)
	case spec.MaxContext == 0:
		f.Detail = fmt.Sprintf("%s, adapters: %d, context: not told", spec.Model, len(spec.Adapters))
	default:
		f.Detail = fmt.Sprintf("%s, adapters: %d, context: %d tokens", spec.Model, len(spec.Adapters), spec.MaxContext)
	}
	r.facts = append(r.facts, f)
}

// names sorts what is listed into base models and adapters; longest is the
// greatest context of a base model, 0 = not told.
func (t *told) names() (bases, adapters []string, longest int) {
	for _, s := range t.models {
		switch {
		case s.ID == "":
		case s.Parent != nil && *s.Parent != "":
			adapters = append(adapters, s.ID)
		default:
			bases = append(bases, s.ID)
			longest = max(longest, s.MaxModelLen)
		}
	}
	return bases, adapters, longest
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

// events shakes hands with every event port.
func (r *probe) events(spec pod.Spec) {
	if len(spec.Events) == 0 {
		detail := "no event endpoint is known: routed to by load alone"
		if spec.Bind != "" {
			detail = "the engine dials " + spec.Bind
		}
		r.facts = append(r.facts, Fact{Pod: r.name, What: "events", OK: spec.Bind != "", Detail: detail})
	}
	for rank, e := range spec.Events {
		r.port("events", rank, e, "SUB")
	}
}

func (r *probe) replay(spec pod.Spec) {
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
