package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/eppctl/eppctl/internal/core/pod"
	prompts "github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// Fact is one thing a probe found out about a pod.
type Fact struct {
	Pod    string `json:"pod"`
	What   string `json:"what"` // http, engine, model, metrics, events, replay, tokenize
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	// Code is the code of the Finding that says the same of a fact that is not OK.
	Code string `json:"code,omitempty"`
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
	// Port connects to a ZeroMQ endpoint as a socket of this kind ("SUB", or
	// "DEALER", which also asks for a replay) and says what it met; nil = do it.
	Port func(ctx context.Context, endpoint, kind string) (detail string, err error)
}

// Probed is what came of one pod.
type Probed struct {
	Spec     pod.Spec // completed by what the engine tells
	Facts    []Fact
	Findings []Finding
	Sample   *telemetry.Sample // of its metrics page; nil = it could not be read
}

// Probe asks everything a pod has a port for, one Fact each, and returns what
// discover finds on the way. It sends no prompt but the word "probe". Of a pod
// without an address only the event and replay ports are known.
func (p *Prober) Probe(ctx context.Context, spec pod.Spec) Probed {
	r := p.probe(ctx, spec.Name)
	if spec.Address == "" {
		r.events(spec)
		r.replay(spec)
		return Probed{Spec: spec, Facts: r.facts, Findings: r.findings}
	}
	spec = r.ask(spec)
	return Probed{spec, r.facts, r.findings, r.sample}
}

// Sample reads the metrics page of a completed spec.
func (p *Prober) Sample(ctx context.Context, spec pod.Spec) (*telemetry.Sample, error) {
	return p.probe(ctx, spec.Name).page(spec)
}

func (p *Prober) probe(ctx context.Context, name string) *probe {
	r := &probe{Prober: *p, ctx: ctx, name: name}
	if r.Client == nil {
		r.Client = http.DefaultClient
	}
	if r.Port == nil {
		r.Port = knock
	}
	return r
}

// ask goes through everything, and returns the spec as completed.
func (r *probe) ask(spec pod.Spec) pod.Spec {
	t, err := askEngine(r.ctx, r.Client, "http://"+spec.Address, spec.Engine)
	r.answers(spec.Address, err)
	if err != nil {
		r.rest(spec)
		return spec
	}
	spec, r.findings = complete(spec, t)
	r.engine(spec, t)
	r.model(spec, t)
	r.metrics(spec)
	r.events(spec)
	r.replay(spec)
	r.tokenize(spec)
	return spec
}

// probe is one run over one pod.
type probe struct {
	Prober
	ctx   context.Context //nolint:containedctx // lives for one call of Probe
	name  string
	facts []Fact

	findings []Finding
	sample   *telemetry.Sample
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
	if spec.HasEvents() {
		r.events(spec)
	} else {
		skip("events")
	}
	r.replay(spec)
	skip("tokenize")
}

// answers notes whether anything speaks HTTP at the pod's address. Not every error
// names what was asked.
func (r *probe) answers(address string, err error) {
	if err != nil {
		err = fmt.Errorf("%s: %s", address, inWords(err))
	}
	r.fact("http", err, address+" answers")
}

// fact notes detail, or the error instead.
func (r *probe) fact(what string, err error, detail string) {
	if err != nil {
		detail = printable(said(err), 200)
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
		case s.ID == "", len(s.ID) > prompts.MaxName: // no request can ask for it
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
	s, err := r.page(spec)
	at := pod.MaskURL(spec.Metrics)
	if err != nil {
		r.fact("metrics", fmt.Errorf("%s: %w", at, err), "")
		return
	}
	r.sample = s
	r.fact("metrics", nil, fmt.Sprintf("%s: requests running %s, waiting %s; KV cache in use %s",
		at, shown(s.Running, 1, ""), shown(s.Waiting, 1, ""), shown(s.KVUsage, 100, "%")))
	r.several(spec, s)
}

// page reads the metrics page.
func (r *probe) page(spec pod.Spec) (*telemetry.Sample, error) {
	var buf bytes.Buffer
	ctx, cancel := context.WithTimeout(r.ctx, answerTimeout)
	defer cancel()
	page, err := fetchPage(ctx, r.Client, spec.Metrics, 0, &buf)
	if err != nil {
		return nil, err
	}
	return telemetry.Parse(page, telemetry.ParseOptions{Engine: spec.Engine, Model: spec.Model})
}

// shown is a value times scale with its unit, "?" if it is not known.
func shown(v telemetry.Value, scale float64, unit string) string {
	if !v.Known {
		return "?" + unit
	}
	return strconv.FormatFloat(v.V*scale, 'g', 4, 64) + unit
}

// probeWord is all that a probe ever sends as a prompt.
const probeWord = "probe"

// tokenize asks for the token ids of one word, as a text prompt needs it.
func (r *probe) tokenize(spec pod.Spec) {
	if spec.Engine != pod.EngineVLLM && spec.Engine != pod.EngineSGLang {
		return // the others have no such endpoint
	}
	body, _ := json.Marshal(map[string]string{"model": spec.Model, "prompt": probeWord})
	var answer struct {
		Tokens []int `json:"tokens"`
	}
	err := askJSON(r.ctx, r.Client, "http://"+spec.Address+"/tokenize", body, &answer)
	if err == nil && len(answer.Tokens) == 0 {
		err = fmt.Errorf("%w: no tokens", errNotJSON)
	}
	r.fact("tokenize", err, fmt.Sprintf("answers: the prompt %q has %d tokens", probeWord, len(answer.Tokens)))
}
