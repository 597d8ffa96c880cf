package sim

import (
	"fmt"
	"strings"
)

// Listen holds the addresses a picker and an Envoy in front of a fleet use.
type Listen struct {
	ExtProc, Health, Admin, Metrics string // the picker's
	EndpointsFile                   string
}

// Config writes an eppctl.yaml for the fleet. It names each engine's address
// only: events, replay, model and engine are found out by asking.
func (f *Fleet) Config(l Listen) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# A fleet of simulated engines.\nlisten: {ext_proc: %q, health: %q, admin: %q, metrics: %q}\n",
		l.ExtProc, l.Health, l.Admin, l.Metrics)
	fmt.Fprintf(&b, "envoy: {endpoints_file: %q}\npods:\n", l.EndpointsFile)
	seen := map[string]bool{}
	var models []EngineOptions
	for _, e := range f.Engines {
		fmt.Fprintf(&b, "- {name: %q, address: %q%s}\n", e.Name(), e.Addr(), e.bind())
		if !seen[e.opt.Model] {
			seen[e.opt.Model] = true
			models = append(models, e.opt)
		}
	}
	b.WriteString("models:\n")
	for i, o := range models {
		fmt.Fprintf(&b, "- name: %q\n  default: %v\n  prefill_tokens_per_second: %.0f\n", o.Model, i == 0, o.Profile.PrefillRate()*o.Speedup)
		if o.Tokenizer != "" {
			generate := "off"
			if o.Generates {
				generate = "on"
			}
			fmt.Fprintf(&b, "  tokenizer: {source: %q, parity_generate: %s}\n", o.Tokenizer, generate)
		}
		if len(o.Adapters) > 0 {
			fmt.Fprintf(&b, "  adapters: [%s]\n", strings.Join(o.Adapters, ", "))
		}
	}
	return b.String()
}

// bind is the config of an engine whose publisher dials its subscriber.
func (e *Engine) bind() string {
	if e.opt.EventsTo == "" {
		return ""
	}
	return fmt.Sprintf(", events_bind: %q, replay: %q", "tcp://"+e.opt.EventsTo, e.ReplayEndpoint())
}
