package serve

import (
	"slices"
	"time"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// rules are what a configuration says about picks. A reload replaces them whole.
type rules struct {
	models   Models
	strict   bool
	policy   *pick.Policy
	limit    int
	deadline time.Duration
	standard string // the default model, "" = none
	interval time.Duration
	chains   map[string]*prompt.Chain // by base model
	other    *prompt.Chain            // of models that are not configured
}

func newRules(c *Config, chain func(*Model) *prompt.Chain) *rules {
	r := &rules{
		models: c.Models, strict: c.StrictModels, policy: c.Weights,
		limit: int(c.Limits.RequestBytes), deadline: c.Limits.PickDeadline,
		interval: c.Scrape.Interval, chains: map[string]*prompt.Chain{}, other: chain(&Model{}),
	}
	for i := range c.Models {
		m := &c.Models[i]
		r.chains[m.Name] = chain(m)
		if m.Default {
			r.standard = m.Name
		}
	}
	return r
}

func (r *rules) chain(base string) *prompt.Chain {
	if c, ok := r.chains[base]; ok {
		return c
	}
	return r.other
}

// limits are the ages at which telemetry stops counting, for display.
func (r *rules) limits() telemetry.Limits {
	return telemetry.Limits{FreshNs: int64(r.policy.FreshFor * 1e9), KnownNs: int64(r.policy.KnownFor * 1e9)}
}

// resolve turns the model's name into what a pod must serve.
func (p *Picker) resolve(r *rules, q *pick.Query, must bool) *refusal {
	base, adapter, ok := r.models.Resolve(q.Model)
	if !ok {
		base, adapter, ok = servedByPod(p.fleet.Pods.Snapshot(), q.Model)
	}
	switch {
	case ok:
		q.Base, q.Adapter = base, adapter
		if q.Model == "" {
			q.Model = base
		}
	case !must:
	case r.strict && q.Model != "":
		return modelNotFound(q.Model)
	}
	return nil
}

// servedByPod finds a model that no entry of the configuration names but a pod
// does.
func servedByPod(set *pod.Set, model string) (base, adapter string, ok bool) {
	if model == "" {
		return "", "", false
	}
	for _, p := range set.Pods {
		if p.Spec.Model == model {
			return model, "", true
		}
		if slices.Contains(p.Spec.Adapters, model) {
			return p.Spec.Model, model, true
		}
	}
	return "", "", false
}

// label is the model label of a request: a configured name, or "other".
func (p *Picker) label(q *pick.Query) string {
	if q != nil && p.rules.Load().models.has(q.Base) {
		return q.Base
	}
	return otherModel
}

// modelNames lists every name a client may ask for.
func (p *Picker) modelNames(set *pod.Set) []string {
	var list []string
	for _, m := range p.rules.Load().models {
		list = append(append(append(list, m.Name), m.Aliases...), m.Adapters...)
	}
	for _, x := range set.Pods {
		if x.Spec.Model != "" {
			list = append(list, x.Spec.Model)
		}
		list = append(list, x.Spec.Adapters...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
