package serve

import (
	"fmt"
	"strconv"
)

// Model is one base model of the fleet and what the picker needs to know of it.
type Model struct {
	Name     string   `yaml:"name"`
	Aliases  []string `yaml:"aliases"`  // other names clients use for it
	Adapters []string `yaml:"adapters"` // LoRA adapters that requests name as their model
	Default  bool     `yaml:"default"`  // taken when a request names no model

	// The model's own calibration, see pick.Calibration; 0 = that of weights.
	PrefillTokensPerSecond float64 `yaml:"prefill_tokens_per_second"`
	PrefillConstant        float64 `yaml:"prefill_constant"`
	PrefillQuadratic       float64 `yaml:"prefill_quadratic"`
	KVBytesPerToken        Bytes   `yaml:"kv_bytes_per_token"`
	KVPoolTokens           int     `yaml:"kv_pool_tokens"`

	Tokenizer Tokenizer `yaml:"tokenizer"`
	Render    Endpoints `yaml:"render"`   // that tell what they make of a whole request
	Tokenize  Endpoints `yaml:"tokenize"` // that tell the ids of its text
}

// Models is the table that turns the model of a request into a base model and
// an adapter.
type Models []Model

// Resolve looks a request's model up. An empty name means the default model.
// Unknown names give ok false: the caller routes by load, or refuses.
func (m Models) Resolve(name string) (base, adapter string, ok bool) {
	for i := range m {
		if x := &m[i]; name == "" && x.Default || name != "" && (x.Name == name || contains(x.Aliases, name)) {
			return x.Name, "", true
		} else if name != "" && contains(x.Adapters, name) {
			return x.Name, name, true
		}
	}
	return "", "", false
}

// Get returns the entry of a base model, or nil.
func (m Models) Get(base string) *Model {
	for i := range m {
		if m[i].Name == base {
			return &m[i]
		}
	}
	return nil
}

func (m Models) has(base string) bool { return m.Get(base) != nil }

func (m Models) names() []string {
	var out []string
	for i := range m {
		if m[i].Name != "" {
			out = append(out, m[i].Name)
		}
	}
	return out
}

// models checks the table: every name a client may use leads to one place.
func (d *decoder) models(list []Model) Models {
	owner := map[string]string{}
	byDefault := ""
	for i := range list {
		m, key := &list[i], "models["+strconv.Itoa(i)+"]"
		if m.Name == "" {
			d.bad(key+".name", errMissing.Error(), "the base model's name as the engine serves it", "")
		}
		claim := func(name, at string) {
			if first, taken := owner[name]; taken && name != "" {
				d.bad(at, fmt.Sprintf("found %q, which is taken by %s", clip(name), first), "a name that leads to one model", "")
				return
			}
			owner[name] = at
		}
		claim(m.Name, key+".name")
		for j, a := range m.Aliases {
			claim(a, key+".aliases["+strconv.Itoa(j)+"]")
		}
		for j, a := range m.Adapters {
			claim(a, key+".adapters["+strconv.Itoa(j)+"]")
		}
		if m.Default {
			if byDefault != "" {
				d.bad(key+".default", found("true, and "+byDefault+" is the default too"), "one default model", "")
			}
			byDefault = key
		}
		d.tokenizer(key+".tokenizer", &m.Tokenizer)
		d.servers(key+".render", &m.Render)
		d.servers(key+".tokenize", &m.Tokenize)
	}
	return list
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
