package explain

import (
	"context"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// Try is a command that tells more about something in the answer.
type Try struct {
	For     string  `json:"for"` // reason code, name of a filter, or "flip"
	Pod     *string `json:"pod"`
	Command string  `json:"command"`
}

// maxTries is how many are offered: an operator runs one at a time.
const maxTries = 3

// The commands, by what they are about; POD is the pod concerned.
const (
	tryEvents    = "eppctl tap --check --pod POD"
	tryReplay    = "eppctl tap --replay -e --stats --pod POD"
	tryPod       = "eppctl check POD"
	tryTokenizer = "eppctl check"
	tryParity    = "REQUEST --compare-engine http://ADDR"
)

// streamTries are those for an event stream that is not live, by the word that says
// why, and for a pod that holds nothing.
var streamTries = map[reason.Code]string{
	reason.NoEventsEver: tryEvents, reason.Silent: tryEvents, reason.Disconnected: tryEvents, reason.EventsLate: tryEvents,
	reason.WrongFraming: tryEvents, reason.Undecodable: tryEvents, reason.EventsSkipped: tryEvents,
	reason.BlockSizeDiffer: tryEvents, reason.OrphanParent: tryEvents, reason.Namespace: tryEvents,
	reason.Unreachable: tryPod, reason.NoEventsSource: tryPod, reason.CacheOff: tryPod, reason.Asleep: tryPod,
	reason.Missing: tryReplay, reason.HistoryLost: tryReplay, reason.Unconfirmed: tryReplay,
}

// requestTries are those for a prompt without token ids.
var requestTries = map[reason.Code]string{
	reason.NoTokenizer: tryTokenizer, reason.TokenizeFailed: tryTokenizer, reason.TokenizeSlow: tryTokenizer,
	reason.Unloadable: tryTokenizer, reason.Deadline: tryTokenizer,
	reason.TemplateUnused: tryTokenizer, reason.Shape: tryTokenizer,
}

// filterTries are those for a pod that is left out.
var filterTries = map[string]string{
	"failing": tryPod, "not-answering": tryPod, "asleep": tryPod, "hardware-fatal": tryPod, "unresolved": tryPod, "model": tryPod,
}

// tries finds what to run next, the causes before their effects: what concerns every
// pod, what the two leaders lack, why others are left out, and last, where nothing is
// wrong, the change that would give the request to another pod. ask is the command
// line that this question was, config the flag that the other commands need.
func tries(x *pick.Explanation, ask, config string) []Try {
	list := []Try{}
	add := func(why string, pod *pick.ExplainedPod, command string) {
		t := Try{For: why}
		words := []string{"REQUEST", ask}
		if pod != nil {
			t.Pod = &pod.Name
			words = append(words, "POD", quoted(pod.Name), "ADDR", quoted(pod.Addr))
		}
		t.Command = strings.NewReplacer(words...).Replace(command)
		if config != "" && !strings.HasPrefix(command, "REQUEST") {
			t.Command += " " + config
		}
		if command != "" && len(list) < maxTries && !slices.ContainsFunc(list, func(o Try) bool { return o.Command == t.Command }) {
			list = append(list, t)
		}
	}
	add(deref(x.Unmatched), nil, requestTries[reason.Code(deref(x.Unmatched))])
	leaders := leadersOf(x)
	if p := x.Tokenizer.Parity; p != nil && p.State == "failed" && len(leaders) > 0 {
		add(string(p.Why), leaders[0], tryParity)
	}
	for _, p := range leaders {
		add(deref(p.IndexWhy), p, streamTries[reason.Code(deref(p.IndexWhy))])
		add(deref(p.Reason), p, streamTries[reason.Code(deref(p.Reason))])
		if p.Telemetry != "fresh" {
			add("telemetry-"+p.Telemetry, p, tryPod)
		}
	}
	for i := range x.Pods {
		if p := &x.Pods[i]; p.Filter != nil {
			add(p.Filter.Name, p, filterTries[p.Filter.Name])
		}
	}
	if x.Flip != nil && len(*x.Flip) > 0 && len(list) == 0 {
		add("flip", nil, "REQUEST "+flipFlag(&(*x.Flip)[0]))
	}
	return list
}

// tries finds what to run after this question.
func (c *Command) tries(ctx context.Context, x *pick.Explanation) []Try {
	if c.ConfigOf != nil {
		c.Config = c.ConfigOf(ctx)
	}
	return tries(x, c.command(), c.Config)
}

// leadersOf are the pods that the decision was between: the winner and the runner-up,
// or the first of all where nobody won.
func leadersOf(x *pick.Explanation) (list []*pick.ExplainedPod) {
	for i := range x.Pods {
		if p := &x.Pods[i]; p.Rank != nil && *p.Rank <= 2 {
			list = append(list, p)
		}
	}
	return list
}

// command is the command line of this question, as far as it can be typed again: a
// prompt on the command line may be pages.
func (c *Command) command() string {
	words := []string{"eppctl explain"}
	switch {
	case c.RequestID != "":
		words = append(words, "--request-id "+quoted(c.RequestID))
	case c.File != "" && c.File != "-":
		words = append(words, "-f "+quoted(c.File))
	default:
		words = append(words, "...")
	}
	return strings.Join(append(words, c.Typed...), " ")
}

// Flag is a flag with its value as a shell takes it.
func Flag(name, value string) string { return "--" + name + " " + quoted(value) }

// quoted makes a word safe to paste into a shell.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/@%+,=", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// tries lists what to run next, one command a line: it is there to be pasted whole.
func (p *page) tries() {
	for i, t := range p.o.Try {
		label := ""
		if i == 0 {
			label = "TRY"
		}
		p.uncut(label, t.Command, "("+t.For+")")
	}
}
