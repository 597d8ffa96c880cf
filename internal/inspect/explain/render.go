package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// Options say how much is shown.
type Options struct {
	All  bool // no folding of alike or further rows
	Wide bool // the inputs of every term as well, and no text cut
	Now  time.Time

	Tokens  bool        // the prompt's ids
	Against *Comparison // with an engine's; nil = none was asked
	Try     []Try       // what to run next
	File    string      // that the answer was saved in, "" = it has just come
}

// maxRows is how many pods MATCH and SCORES show without --all.
const maxRows = 12

// Render prints an explanation as the blocks of one screen: PICK, REQUEST, STATE,
// IF, FILTERED, MATCH, SCORES, TIE, FLIP, TRY. It recomputes nothing.
func Render(w io.Writer, s *out.Streams, x *pick.Explanation, o Options) error {
	p := &page{w: w, s: s, x: x, o: o}
	p.scored, p.filtered = split(x.Pods)
	p.pick()
	p.request()
	p.state()
	p.whatIf()
	p.against()
	p.tokens()
	p.filters()
	p.match()
	p.scores()
	p.inputs()
	p.tie()
	p.flips()
	p.tries()
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

// line writes a labelled line; parts that are empty leave no gap. Where a terminal has no
// room it goes on below: a part at a time, and a long one by its words.
func (p *page) line(label string, parts ...string) {
	for _, text := range p.packed(parts) {
		p.labelled(label, text)
		label = ""
	}
}

// packed joins parts to as few lines as hold them.
func (p *page) packed(parts []string) (list []string) {
	limit := p.s.Width - labelWidth
	if !p.s.OutTTY || limit <= 0 {
		return []string{joined(parts)}
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	for i := 0; i < len(parts) || i == 0; {
		n := 1
		for i+n < len(parts) && out.Cells(joined(parts[i:i+n+1])) <= limit {
			n++
		}
		end := min(i+n, len(parts))
		list = append(list, out.Wrap(joined(parts[i:end]), limit)...)
		i = max(end, 1)
	}
	return list
}

// uncut writes a labelled line whose first part must stay whole, on however many
// lines of a terminal. Where there is no room beside it the note stands below.
func (p *page) uncut(label, first, note string) {
	if body := joined([]string{first, note}); p.fits(body) {
		p.labelled(label, body)
		return
	}
	p.labelled(label, out.Clean(first))
	p.line("", note)
}

// spare writes a labelled line with one part more where a terminal has room for all
// of it.
func (p *page) spare(label, more string, parts ...string) {
	if all := append(parts, more); p.fits(joined(all)) {
		parts = all
	}
	p.line(label, parts...)
}

// fits reports that a text has room on one line beside the label.
func (p *page) fits(text string) bool {
	limit := p.s.Width - labelWidth
	return !p.s.OutTTY || limit <= 0 || out.Cells(text) <= limit
}

// lines breaks text into what fits beside an indent.
func (p *page) lines(text string, indent int) []string {
	if !p.s.OutTTY || p.s.Width <= indent {
		return []string{text}
	}
	return out.Wrap(text, p.s.Width-indent)
}

const labelWidth = 8

func joined(parts []string) string {
	text := make([]string, 0, len(parts))
	for _, s := range parts {
		if s != "" {
			text = append(text, out.Clean(s))
		}
	}
	return strings.Join(text, "   ")
}

func (p *page) labelled(label, body string) {
	p.write(strings.TrimRight(p.s.Paint(out.Bold, label)+strings.Repeat(" ", max(labelWidth-len(label), 0))+body, " ") + "\n")
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
		p.spare("PICK", took, "none", k.Outcome, deref(k.Why))
		p.line("", commonest(p.x))
		return
	}
	winner := p.pod(*k.Pod)
	total := ""
	if winner != nil && winner.Total != nil {
		total = seconds(*winner.Total) + " s"
	}
	rank := ""
	if k.Rank != nil && *k.Rank > 0 {
		rank = fmt.Sprintf("rank %d", *k.Rank)
	}
	p.spare("PICK", took, *k.Pod+"  "+deref(k.Addr), rank, total, cmp.Or(marginText(&k), "no runner-up"))
	if k.Why != nil {
		p.line("", *k.Why)
	}
	if winner != nil && winner.Match.RankWhy != nil {
		p.line("", *winner.Match.RankWhy)
	}
	if k.RunnerUp != nil {
		p.line("", decisive(winner, p.pod(*k.RunnerUp)))
	}
}

func (p *page) request() {
	x := p.x
	tokens := out.Plural(x.Tokens, "token")
	if x.Prompts > 1 {
		tokens += fmt.Sprintf(" in %d prompts", x.Prompts)
	}
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
	id := "" // that of a question means nothing to anybody, and half of one is another one
	if x.Source == recorded && p.fits("id "+x.RequestID) {
		id = "id " + x.RequestID
	}
	p.line("REQUEST", model+", "+adapter, tokens, unmatched, id)
	p.tokenizer()
}

// tokenizer says who told the ids, and who could not.
func (p *page) tokenizer() {
	x := &p.x.Tokenizer
	who := ""
	switch {
	case x.Provider == nil && len(x.Tried) == 0:
		return
	case x.Provider == nil:
		who = "nobody told the token ids"
	case x.Status == nil:
		who = "nobody told the token ids; pods are compared by the " + *x.Provider + " sent to them before, which is approximate"
	default:
		who = "token ids by " + *x.Provider + ", " + *x.Status
	}
	if us := p.x.ReadUs; us != nil { // nearly all of it is theirs
		who += fmt.Sprintf(", after %.1f ms", *us/1e3)
	}
	p.line("", who)
	if x.Split == "regex" {
		p.line("", "split by regexp2: the tokenizer's pattern is none that is known here, which is slower and no less exact")
	}
	p.parity(x.Parity)
	if x.Cut {
		p.line("", "matched up to the first image, sound or video: no renderer told its name")
	}
	for _, t := range x.Tried {
		text := "not by " + t.Provider + ": " + t.Reason
		if t.Detail != nil {
			text += " (" + *t.Detail + ")"
		}
		p.line("", text)
	}
}

// parity says what comparing native ids with an engine's has found.
func (p *page) parity(x *view.Parity) {
	if x == nil {
		return
	}
	text := "parity " + x.String()
	if x.Engine != "" {
		text += " at " + x.Engine
	}
	if x.Detail != "" {
		text += ": " + x.Detail
	}
	p.line("", text)
}

// recorded is the source of a pick that was made; anything else was computed when
// it was asked for.
const recorded = "recorded"

func (p *page) state() {
	source, at := p.x.Source, p.x.At
	if t, err := time.Parse(time.RFC3339Nano, at); err == nil {
		switch {
		case p.o.File != "":
			source += " " + ago(p.o.Now.Sub(t)) + " ago, from " + p.o.File
		case source == recorded:
			source += " " + ago(p.o.Now.Sub(t)) + " ago"
		}
		if at = t.UTC().Format("2006-01-02T15:04:05.000Z07:00"); p.s.OutTTY {
			at = t.Local().Format("15:04:05.000")
		}
	}
	p.line("STATE", fmt.Sprintf("%s, epoch %d at %s", source, p.x.Epoch, at),
		fmt.Sprintf("%s scored, %d filtered", out.Plural(len(p.scored), "pod"), len(p.filtered)))
}

func (p *page) tie() {
	t := p.x.Pick.Tie
	if len(p.scored) == 0 && len(p.filtered) > 0 {
		p.write("\n")
	}
	switch {
	case p.x.Pick.Pod == nil:
		p.line("TIE", "nothing to choose from")
	case t.Used:
		p.line("TIE", fmt.Sprintf("%s within %g s of the best, by the hash of the request id: %s",
			out.Plural(t.Size, "pod"), t.Window, p.order(t.Order)))
	case !p.o.Wide: // the margin above says it
	case p.x.Pick.Margin != nil:
		p.line("TIE", fmt.Sprintf("not used: margin %s s over the window of %g s", seconds(*p.x.Pick.Margin), t.Window))
	default:
		p.line("TIE", "not used: no runner-up")
	}
}

// order names the pods of a tie, as the hash puts them; the wide form has the hashes.
func (p *page) order(names []string) string {
	more := ""
	if n := len(names) - maxRows; n > 0 && !p.o.All {
		names, more = names[:maxRows], fmt.Sprintf(", %d more (--all lists them)", n)
	}
	if p.o.Wide {
		names = slices.Clone(names)
		for i, name := range names {
			if x := p.pod(name); x != nil && x.TieWeight != nil {
				names[i] += " " + *x.TieWeight
			}
		}
	}
	return strings.Join(names, ", ") + more
}

func (p *page) pod(name string) *pick.ExplainedPod {
	for i := range p.x.Pods {
		if p.x.Pods[i].Name == name {
			return &p.x.Pods[i]
		}
	}
	return nil
}
