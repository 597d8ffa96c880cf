package chat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
	"github.com/eppctl/eppctl/internal/core/chat/jinja2/syntax"
)

// Options are what an engine was started with.
type Options struct {
	Engine        Engine
	Model         Model
	Template      string // --chat-template, as text; "" = the model's
	ContentFormat Format // --chat-template-content-format
	Kwargs        []byte // --default-chat-template-kwargs, a JSON object; nil = none
	Limits        jinja2.Limits
	// DropToolsOnNone: --exclude-tools-when-tool-choice-none.
	DropToolsOnNone bool
	// NoToolParser: without --enable-auto-tool-choice the engine refuses the
	// choice auto, which is the default when there are tools.
	NoToolParser bool
	// DisabledEffort is --anthropic-disabled-thinking-effort; "" is auto.
	DisabledEffort string
	// StartDate is VLLM_SYSTEM_START_DATE, which stands in Harmony prompts in the stead of
	// the day's date; "" = it is not set.
	StartDate string
	// Release is the engine's now, where prompts differ by it; nil = not known.
	Release func() Release
}

// Renderer renders the chats of one model as one engine does. It may be used by
// many goroutines at once.
type Renderer struct {
	options  Options
	files    *repository
	defaults jinja2.Value // of Options.Kwargs; read only
	own      string       // the encoder that is taken instead of a template; "" = none

	mu        sync.Mutex
	templates map[string]*template // compiled, by the name choose gives

	// What the templates were found to do, as vLLM finds it.
	ordered    probe[bool]
	effortless probe[string]
}

// template is a compiled template and what the engine reads off it.
type template struct {
	source string
	code   *jinja2.Template
	format Format
	tools  string // why chats with tools are not rendered with it
	err    error
}

// New reads the files and compiles the template of chats without tools. The error
// is an *Unrenderable when chats of this model are not rendered from a template
// here, a *Rejected when the engine cannot use the template either.
func New(files Files, o Options) (*Renderer, error) {
	own := o.encoder()
	if why := o.Model.Bypass(); why != "" && own == "" {
		return nil, unrenderable(why)
	}
	r := &Renderer{own: own, options: o, templates: map[string]*template{}, defaults: jinja2.Dict()}
	var err error
	if r.files, err = files.read(); err != nil {
		return nil, err
	}
	if o.Kwargs != nil {
		if r.defaults, err = jinja2.ParseJSON(o.Kwargs); err != nil {
			return nil, fmt.Errorf("default chat template kwargs: %w", err)
		}
		if !r.defaults.IsDict() {
			return nil, fmt.Errorf("default chat template kwargs: not a JSON object")
		}
	}
	if own != "" {
		return r, nil
	}
	if _, err := r.template(false); err != nil {
		return nil, err
	}
	return r, nil
}

// Encoder names the code that stands for the engine's own where that does not render
// chats from a template, by the engine's tokenizer mode; "" = there is a template.
func (r *Renderer) Encoder() string { return r.own }

// template is the one for a request, compiled once.
func (r *Renderer) template(tools bool) (*template, error) {
	name, source, err := r.files.choose(r.options.Template, tools)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.templates[name]
	if t == nil {
		t = &template{source: source, format: r.options.ContentFormat}
		if t.code, t.err = jinja2.Compile(source); t.err == nil {
			t.tools = r.options.Model.BypassWithTools(t.code.Tree())
			if t.format == AutoFormat {
				t.format = detectFormat(t.code.Tree())
			}
		}
		r.templates[name] = t
	}
	if t.err != nil {
		return nil, classify(t.err)
	}
	return t, nil
}

// ContentFormat is how contents are passed to the template of requests without
// or with tools.
func (r *Renderer) ContentFormat(tools bool) (Format, error) {
	if r.own != "" {
		return encoders[r.own].format, nil
	}
	t, err := r.template(tools)
	if err != nil {
		return AutoFormat, err
	}
	return t.format, nil
}

// Prompt is a rendered chat.
type Prompt struct {
	Text string
	// Exact is how many bytes of Text the engine's prompt surely begins with:
	// all of them, unless there is MediaReached.
	Exact int
	// Special says that the engine encodes Text with the special tokens of the
	// tokenizer around it, as vLLM does for /v1/responses alone.
	Special bool
	// Alone says that nothing is put around Text, whatever the body says.
	Alone bool
	// Apart are the places in Text, ascending, at which the engine encodes what stands
	// before and behind each on its own.
	Apart    []int
	Warnings []Warning
}

// Render renders the body of a request to /v1/chat/completions. now is the
// engine's time in its zone; zero when it is not known, and then a template that
// prints the date cannot be rendered. The error is a *Rejected, an *Unrenderable,
// or the context's.
func (r *Renderer) Render(ctx context.Context, body []byte, now time.Time) (*Prompt, error) {
	return r.RenderAPI(ctx, Completions, body, now)
}

// RenderAPI is Render for a request of the given form.
func (r *Renderer) RenderAPI(ctx context.Context, api API, body []byte, now time.Time) (*Prompt, error) {
	if r.own != "" && api != Completions {
		return nil, unrenderable("what the engine makes of this form for a model without a template is not known")
	}
	c := converter{
		engine:      r.options.Engine,
		systemFirst: func() (bool, error) { return r.systemFirst(ctx, now) },
		noThinking:  func() (string, error) { return r.noThinking(ctx, now) },
	}
	req, err := c.read(api, body)
	if err != nil {
		return nil, err
	}
	return r.render(ctx, req, c.warnings, now)
}

func (r *Renderer) render(ctx context.Context, req *request, warnings []Warning, now time.Time) (*Prompt, error) {
	if r.own == harmonyMode { // which has a parser of its own
		if r.options.DropToolsOnNone && isText(req.choice, "none") {
			req.tools = jinja2.None()
		}
		return r.harmony(req, now)
	}
	if r.options.NoToolParser && !req.unparsed && !req.tools.IsNone() && (req.choice.IsNone() || !isText(req.choice, "none")) {
		return nil, rejected("a choice of tools without a parser for them")
	}
	if r.options.DropToolsOnNone && isText(req.choice, "none") {
		req.tools = jinja2.None()
	}
	if r.own != "" {
		return r.encode(req)
	}
	t, err := r.template(!req.tools.IsNone())
	if err != nil {
		return nil, err
	}
	if t.tools != "" && !req.tools.IsNone() {
		return nil, unrenderable(t.tools)
	}
	p := &preparation{engine: r.options.Engine, format: t.format, warnings: warnings}
	messages, err := r.prepare(p, req, t)
	if err != nil {
		return nil, err
	}
	final := ""
	if req.goesOn {
		if final, err = markEnd(messages, t.source); err != nil {
			return nil, err
		}
	}
	vars := r.variables(req, messages)
	render := func() (string, error) {
		out, err := t.code.Render(ctx, jinja2.Input{Vars: vars, Now: now, Limits: r.options.Limits})
		if err != nil {
			return "", classify(err)
		}
		if out.Dated {
			p.warn(DateInPrompt)
		}
		if req.goesOn {
			return cutAtEnd(out.Text, final)
		}
		return out.Text, nil
	}
	prompt := &Prompt{Special: req.special}
	if prompt.Text, err = render(); err != nil {
		return nil, err
	}
	prompt.Exact = len(prompt.Text)
	if p.media != nil {
		p.warn(MediaReached)
		if prompt.Exact, err = p.cut(messages, prompt.Text, render); err != nil {
			return nil, err
		}
	}
	if reasoningMissing(req.messages, prompt.Text) {
		p.warn(ReasoningLeftOut)
	}
	prompt.Warnings = p.warnings
	return prompt, nil
}

// encode is render without a template.
func (r *Renderer) encode(req *request) (*Prompt, error) {
	if req.goesOn {
		return nil, unrenderable("continue_final_message for a model without a template")
	}
	own := encoders[r.own]
	p := &preparation{engine: r.options.Engine, format: own.format}
	messages, err := p.prepare(req.messages)
	if err != nil {
		return nil, err
	}
	if p.media != nil {
		return nil, unrenderable("an image, sound or video for a model without a template")
	}
	for _, m := range messages {
		if reasoning := member(m, "reasoning"); !reasoning.IsNone() && !jinja2.IsText(reasoning) {
			return nil, unrenderable("reasoning that is not text, for a model without a template")
		}
	}
	prompt := &Prompt{Special: req.special}
	if prompt.Text, err = own.encode(messages, r.variables(req, messages)); err != nil {
		return nil, err
	}
	prompt.Exact = len(prompt.Text)
	if reasoningMissing(req.messages, prompt.Text) {
		p.warn(ReasoningLeftOut)
	}
	prompt.Warnings = p.warnings
	return prompt, nil
}

// prepare is the engine's preparation of the messages.
func (r *Renderer) prepare(p *preparation, req *request, t *template) ([]jinja2.Value, error) {
	if r.options.Engine == SGLang {
		return p.sglang(req)
	}
	messages, err := p.prepare(req.messages)
	if err != nil {
		return nil, err
	}
	return p.developers(messages, t.source), nil
}

// variables are what transformers gives a template: special tokens, kwargs of the
// server and above them of the request, and the conversation. A kwarg of a
// request that is null or "auto" is not given (vLLM's merge_kwargs).
func (r *Renderer) variables(req *request, messages []jinja2.Value) map[string]jinja2.Value {
	vars := map[string]jinja2.Value{"documents": jinja2.None()}
	for name, s := range r.files.specials {
		vars[name] = jinja2.String(s)
	}
	given := func(dict jinja2.Value, all bool) {
		for _, key := range dict.AsDict().Keys {
			if v, _ := jinja2.Get(dict, key); all || !v.IsNone() && !isText(v, "auto") {
				vars[key] = v
			}
		}
	}
	if !req.plain {
		given(r.defaults, true)
	}
	vars["tools"] = req.tools
	given(req.kwargs, false)
	given(req.options, false)
	delete(vars, "continue_final_message") // an argument, not a variable
	vars["messages"] = jinja2.List(messages)
	return vars
}

// cut finds how far the text does not depend on what stands at the first place
// that is no text: it is rendered again with other text there, and what both have
// in common does not.
func (p *preparation) cut(messages []jinja2.Value, rendered string, render func() (string, error)) (int, error) {
	m := p.media.message
	if !slices.ContainsFunc(messages, func(x jinja2.Value) bool { return x.AsDict() == m.AsDict() }) {
		return 0, nil // it was merged into another message
	}
	const probe = "\ue000"
	if c := member(m, "content"); c.IsList() && p.media.part < c.AsList().Len() {
		c.AsList().Items[p.media.part] = textPart(jinja2.String(probe))
	} else {
		jinja2.Put(m, "content", jinja2.String(probe))
	}
	other, err := render()
	if err != nil {
		if refused := (*Rejected)(nil); errors.As(err, &refused) {
			return 0, nil // nothing is known to be independent of it
		}
		return 0, err
	}
	n := 0
	for n < len(rendered) && n < len(other) && rendered[n] == other[n] {
		n++
	}
	for n > 0 && n < len(rendered) && rendered[n]&0xc0 == 0x80 { // inside a character
		n--
	}
	return n, nil
}

// reasoningMissing reports whether reasoning of the request is not in the text.
func reasoningMissing(messages []jinja2.Value, rendered string) bool {
	for _, m := range messages {
		if !m.IsDict() {
			continue
		}
		reasoning := text(m, "reasoning")
		if reasoning == "" {
			reasoning = text(m, "reasoning_content")
		}
		if reasoning == "" {
			if inside, _, ok := strings.Cut(text(m, "content"), "</think>"); ok {
				_, reasoning, _ = strings.Cut(inside, "<think>")
			}
		}
		if !strings.Contains(rendered, strings.TrimFunc(reasoning, syntax.IsSpace)) {
			return true
		}
	}
	return false
}

func keys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
