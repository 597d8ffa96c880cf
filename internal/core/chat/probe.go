package chat

import (
	"context"
	"errors"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
	"github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"
)

// probe is what an engine finds out about a template by rendering it, once asked.
type probe[T any] struct {
	done  bool
	value T
}

// systemFirst reports whether the template refuses a system message that is not in
// front, so that vLLM merges those of /v1/messages (0.32.0,
// entrypoints/anthropic/serving.py, _should_merge_inline_system). The template for
// tools counts as well as the one without.
func (r *Renderer) systemFirst(ctx context.Context, now time.Time) (bool, error) {
	r.mu.Lock()
	known := r.ordered
	r.mu.Unlock()
	if known.done {
		return known.value, nil
	}
	for _, tools := range []bool{false, true} {
		t, err := r.template(tools)
		if err != nil {
			return false, err
		}
		refuses, err := t.refusesInline(ctx, now)
		if err != nil {
			return false, err
		}
		known.value = known.value || refuses
	}
	known.done = true
	r.mu.Lock()
	r.ordered = known
	r.mu.Unlock()
	return known.value, nil
}

// refusesInline renders a conversation with a second system message as vLLM does:
// in Jinja2 without the functions and tags of transformers, whose use is an error.
func (t *template) refusesInline(ctx context.Context, now time.Time) (bool, error) {
	if marksGeneration(t.code.Tree()) {
		return true, nil
	}
	say := jinja2.String("t")
	messages := []jinja2.Value{message("system", say), message("user", say), message("system", say), message("user", say)}
	out, err := t.code.Render(ctx, jinja2.Input{Now: now, Vars: map[string]jinja2.Value{
		"messages": jinja2.List(messages), "add_generation_prompt": jinja2.Bool(false),
	}})
	var refused *jinja2.Refused
	switch {
	case out.Dated, errors.As(err, &refused):
		return true, nil
	case err != nil:
		return false, classify(err)
	}
	return false, nil
}

// marksGeneration reports whether a tag of transformers is used anywhere.
func marksGeneration(nodes []syntax.Node) bool {
	found := false
	syntax.Walk(nodes, func(n syntax.Node) bool {
		_, is := n.(*syntax.Generation)
		found = found || is
		return !found
	})
	return found
}

// noThinking is the effort that stands for no thinking in /v1/messages: "low" when
// the template refuses "none", or prints for it what it prints for another (vLLM
// 0.32.0, _probe_disabled_thinking_effort).
func (r *Renderer) noThinking(ctx context.Context, now time.Time) (string, error) {
	if set := r.options.DisabledEffort; set != "" && set != "auto" {
		return set, nil
	}
	r.mu.Lock()
	known := r.effortless
	r.mu.Unlock()
	if known.done {
		return known.value, nil
	}
	with, refused, err := r.tryEffort(ctx, "none", now)
	known.value = "none"
	for _, effort := range []string{"low", "medium", "high", "xhigh", "max"} {
		if err != nil || refused {
			break
		}
		var text string
		var no bool
		if text, no, err = r.tryEffort(ctx, effort, now); !no && text == with {
			refused = true
		}
	}
	if err != nil {
		return "", err
	}
	if refused {
		known.value = "low"
	}
	known.done = true
	r.mu.Lock()
	r.effortless = known
	r.mu.Unlock()
	return known.value, nil
}

// tryEffort renders a short chat with an effort.
func (r *Renderer) tryEffort(ctx context.Context, effort string, now time.Time) (text string, refused bool, err error) {
	settings := jinja2.Dict()
	jinja2.Put(settings, "reasoning_effort", jinja2.String(effort))
	req := &request{
		messages: []jinja2.Value{message("user", jinja2.String("Hi"))},
		tools:    jinja2.None(), choice: jinja2.None(), options: jinja2.Dict(), adds: true,
	}
	if err := req.readKwargs(settings); err != nil {
		return "", false, err
	}
	p, err := r.render(ctx, req, nil, now)
	if no := (*Rejected)(nil); errors.As(err, &no) {
		return "", true, nil
	}
	if err != nil {
		return "", false, err
	}
	return p.Text, false, nil
}
