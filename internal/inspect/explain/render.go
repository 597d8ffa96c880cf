package explain

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// Options say how much is shown.
type Options struct {
	All  bool // no folding of alike or further rows
	Wide bool // the inputs of every term as well, and no text cut
	Now  time.Time
}

// maxRows is how many pods MATCH and SCORES show without --all.
const maxRows = 12

// Render prints an explanation as the blocks of one screen: PICK, REQUEST, STATE,
// FILTERED, MATCH, SCORES, TIE. It recomputes nothing.
func Render(w io.Writer, s *out.Streams, x *pick.Explanation, o Options) error {
	p := &page{w: w, s: s, x: x, o: o}
	p.scored, p.filtered = split(x.Pods)
	p.pick()
	p.request()
	p.state()
	p.filters()
	p.match()
	p.scores()
	p.inputs()
	p.tie()
	return p.err
}

// page writes the blocks in turn and keeps the first error.
type page struct {
	w   io.Writer
	s   *out.Streams
	x   *pick.Explanation
	o   Options
	err error

	scored, filtered []*pick.ExplainedPod
}

func split(pods []pick.ExplainedPod) (scored, filtered []*pick.ExplainedPod) {
	for i := range pods {
		if pods[i].Total != nil {
			scored = append(scored, &pods[i])
		} else {
			filtered = append(filtered, &pods[i])
		}
	}
	return scored, filtered
}

// line writes one labelled line; parts that are empty leave no gap.
func (p *page) line(label string, parts ...string) {
	text := make([]string, 0, len(parts))
	for _, s := range parts {
		if s != "" {
			text = append(text, out.Clean(s))
		}
	}
	body := strings.Join(text, "   ")
	if p.s.OutTTY && p.s.Width > 8 {
		body = out.Fit(body, p.s.Width-8)
	}
	p.write(p.s.Paint(out.Bold, label) + strings.Repeat(" ", max(8-len(label), 0)) + body + "\n")
}

func (p *page) write(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, text)
	}
}

// block writes a heading and a table under it.
func (p *page) block(title, note string, t *out.Table) {
	p.write("\n")
	p.line(title, note)
	if p.err == nil {
		p.err = t.Write(p.w, p.s)
	}
}

func (p *page) pick() {
	k := p.x.Pick
	took := ""
	if p.x.DecideUs != nil {
		took = fmt.Sprintf("decided in %.0f us", *p.x.DecideUs)
	}
	if k.Pod == nil {
		p.line("PICK", "none", k.Outcome, deref(k.Why), took)
		p.line("", p.commonest())
		return
	}
	winner := p.pod(*k.Pod)
	total, margin := "", "no runner-up"
	if winner != nil && winner.Total != nil {
		total = seconds(*winner.Total) + " s"
	}
	if k.RunnerUp != nil && k.Margin != nil {
		margin = fmt.Sprintf("%s s over %s", seconds(*k.Margin), *k.RunnerUp)
	}
	rank := ""
	if k.Rank != nil && *k.Rank > 0 {
		rank = fmt.Sprintf("rank %d", *k.Rank)
	}
	p.line("PICK", *k.Pod+"  "+deref(k.Addr), rank, total, margin, took)
	if k.Why != nil {
		p.line("", *k.Why)
	}
	if k.RunnerUp != nil {
		p.line("", decisive(winner, p.pod(*k.RunnerUp)))
	}
}

func (p *page) request() {
	x := p.x
	tokens := out.Plural(x.Tokens, "token")
	if !x.TokensExact {
		tokens = "about " + tokens + " (estimated)"
	}
	if x.Blocks != nil && x.BlockSize != nil {
		tokens += fmt.Sprintf(" = %s of %d", out.Plural(*x.Blocks, "block"), *x.BlockSize)
		if x.TailTokens != nil && *x.TailTokens > 0 {
			tokens += fmt.Sprintf(", %d over", *x.TailTokens)
		}
	}
	model := x.Model
	switch {
	case model == "":
		model = "no model named"
	case x.Base == nil:
		model += " (not configured: routed by load)"
	case *x.Base != model && (x.LoRA == nil || *x.LoRA != model):
		model += " (means " + *x.Base + ")"
	}
	adapter := "no adapter"
	if x.LoRA != nil {
		adapter = "adapter " + *x.LoRA
	}
	unmatched := ""
	if x.Unmatched != nil {
		unmatched = "nothing could be matched: " + *x.Unmatched
	}
	id := "" // that of a question means nothing to anybody
	if x.Source == recorded {
		id = "id " + x.RequestID
	}
	p.line("REQUEST", model+", "+adapter, tokens, unmatched, id)
}

// recorded is the source of a pick that was made; anything else was computed when
// it was asked for.
const recorded = "recorded"

func (p *page) state() {
	source, at := p.x.Source, p.x.At
	if t, err := time.Parse(time.RFC3339Nano, at); err == nil {
		if source == recorded {
			source += " " + ago(p.o.Now.Sub(t)) + " ago"
		}
		if at = t.UTC().Format("2006-01-02T15:04:05.000Z07:00"); p.s.OutTTY {
			at = t.Local().Format("15:04:05.000")
		}
	}
	p.line("STATE", fmt.Sprintf("%s, epoch %d at %s", source, p.x.Epoch, at),
		fmt.Sprintf("%s: %d scored, %d filtered", out.Plural(len(p.x.Pods), "pod"), len(p.scored), len(p.filtered)))
}

func (p *page) tie() {
	t := p.x.Pick.Tie
	p.write("\n")
	switch {
	case p.x.Pick.Pod == nil:
		p.line("TIE", "nothing to choose from")
	case t.Used:
		p.line("TIE", fmt.Sprintf("%s within %g s of the best; the request id chose, in the order %s",
			out.Plural(t.Size, "pod"), t.Window, strings.Join(t.Order, ", ")))
	case p.x.Pick.Margin != nil:
		p.line("TIE", fmt.Sprintf("not used: margin %s s over the window of %g s", seconds(*p.x.Pick.Margin), t.Window))
	default:
		p.line("TIE", "not used: no runner-up")
	}
}

func (p *page) pod(name string) *pick.ExplainedPod {
	for i := range p.x.Pods {
		if p.x.Pods[i].Name == name {
			return &p.x.Pods[i]
		}
	}
	return nil
}
