package chat

import (
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
)

// harmonyMode is the name of the encoder of gpt-oss, whose chats vLLM encodes in the
// Harmony format whatever its tokenizer mode.
const harmonyMode = "harmony"

// harmonyEfforts are the efforts that the format has. vLLM refuses the others, unless it
// was told to take them for one of these (0.33.0, --reasoning-effort-map).
var harmonyEfforts = map[string]bool{"low": true, "medium": true, "high": true}

// nearMidnight is how long before and behind the engine's midnight a date is doubtful: a
// request may wait, and two clocks differ.
const nearMidnight = 2 * time.Minute

// harmony writes the prompt of a chat as vLLM does for gpt-oss (0.23.0 to 0.33.0,
// entrypoints/openai/parser/harmony_utils.py and _make_request_with_harmony; the text by
// openai-harmony 0.0.8 or, since 0.31.0, oss-harmony 0.0.11). chat_template_kwargs,
// add_generation_prompt and continue_final_message change nothing there.
func (r *Renderer) harmony(req *request, now time.Time) (*Prompt, error) {
	release := Release{}
	if r.options.Release != nil {
		release = r.options.Release()
	}
	if release != (Release{}) && (release.Before(0, 23) || !release.Before(0, 34)) {
		return nil, unrenderable("what this release of the engine makes of a Harmony chat is not known")
	}
	date := r.options.StartDate
	if date == "" {
		if now.IsZero() {
			return nil, unrenderable("the prompt has the engine's date, whose time zone is not known")
		}
		date = now.Format(time.DateOnly)
	}
	h := harmonyChat{release: release}
	if err := h.read(req.messages); err != nil {
		return nil, err
	}
	var b harmonyText
	if err := h.preamble(&b, req, date); err != nil {
		return nil, err
	}
	h.dropThoughts()
	for i := range h.turns {
		if err := h.turns[i].write(&b, release); err != nil {
			return nil, err
		}
	}
	b.token("<|start|>")
	b.text("assistant")
	return r.harmonyPrompt(&b, req, now)
}

// harmonyPrompt is what is told of the text.
func (r *Renderer) harmonyPrompt(b *harmonyText, req *request, now time.Time) (*Prompt, error) {
	text := b.b.String()
	limit := r.options.Limits.Output
	if limit == 0 {
		limit = jinja2.DefaultLimits.Output
	}
	if len(text) > limit {
		return nil, unrenderable("the prompt is longer than the limit")
	}
	p := &preparation{}
	if reasoningMissing(req.messages, text) {
		p.warn(ReasoningLeftOut)
	}
	if r.options.StartDate == "" && now.Add(-nearMidnight).Day() != now.Add(nearMidnight).Day() {
		p.warn(DateInPrompt)
	}
	return &Prompt{Text: text, Exact: len(text), Apart: b.apart, Alone: true, Warnings: p.warnings}, nil
}

// harmonyChat is a chat on its way into the format.
type harmonyChat struct {
	release      Release
	instructions string // of the system's or developer's message in front
	instructed   bool   // it has a text, be it empty
	turns        []harmonyTurn
}

// preamble writes the system's message, and the developer's where there is something to
// say in it.
func (h *harmonyChat) preamble(b *harmonyText, req *request, date string) error {
	effort := "medium"
	if e := member(req.options, "reasoning_effort"); jinja2.IsText(e) {
		effort = e.AsString()
	}
	if !harmonyEfforts[effort] {
		return unrenderable("a reasoning_effort that the format does not have")
	}
	b.token("<|start|>")
	b.text("system")
	b.token("<|message|>")
	channels := "# Valid channels: analysis, commentary, final. Channel must be included for every message."
	if !req.tools.IsNone() {
		channels += "\nCalls to these tools must go to the commentary channel: 'functions'."
	}
	b.text("You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\nCurrent date: " + date +
		"\n\nReasoning: " + effort + "\n\n" + channels)
	b.token("<|end|>")
	if h.instructions == "" && req.tools.IsNone() {
		return nil
	}
	var sections []string
	if h.instructed {
		sections = append(sections, harmonyInstructions(h.instructions))
	}
	if !req.tools.IsNone() {
		tools, err := harmonyTools(req.tools.AsList().Items, h.release)
		if err != nil {
			return err
		}
		sections = append(sections, tools)
	}
	b.token("<|start|>")
	b.text("developer")
	b.token("<|message|>")
	b.text(strings.Join(sections, "\n\n"))
	b.token("<|end|>")
	return nil
}

// harmonyInstructions is the section of a developer's message that holds instructions.
func harmonyInstructions(s string) string { return "# Instructions\n\n" + s }

// dropThoughts leaves out what was thought before the last answer.
func (h *harmonyChat) dropThoughts() {
	last := len(h.turns) - 1
	for last >= 0 && h.turns[last].channel != "final" {
		last--
	}
	kept := h.turns[:0]
	for i, t := range h.turns {
		if i >= last || t.channel != "analysis" {
			kept = append(kept, t)
		}
	}
	h.turns = kept
}
