package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// verdict is the error that the report comes to: each fact that FAILs counts, and
// each finding that is at least as grave as failOn says.
func (r *Report) verdict(failOn string) error {
	rows := []struct {
		n    int
		word string // as the table has it
	}{{r.failed(), wordFail}, {r.found(feed.SeverityError), wordError}, {0, wordWarn}}
	if failOn != string(feed.SeverityError) {
		rows[2].n = r.found(feed.SeverityWarning)
	}
	n, parts := 0, []string(nil)
	for _, row := range rows {
		if n += row.n; row.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", row.n, row.word))
		}
	}
	if n == 0 {
		return nil
	}
	return &inspect.Error{
		Kind: inspect.Negative, Code: "E_FINDINGS", Hint: strings.Join(r.next(), "\n"),
		What: fmt.Sprintf("%s to look at: %s", out.Plural(n, "thing"), strings.Join(parts, ", ")),
	}
}

// failed counts the facts that are bad.
func (r *Report) failed() (n int) {
	for _, f := range r.Facts {
		if !f.OK && !f.Skipped {
			n++
		}
	}
	return n
}

// found counts the findings of a severity.
func (r *Report) found(s feed.Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// maxHints bounds what is said to be done: a report of a hundred things is read from
// its top.
const maxHints = 3

// next is what to do, the failures first.
func (r *Report) next() (hints []string) {
	var down []string
	for _, f := range r.Facts {
		switch {
		case f.OK || f.Skipped:
		case f.What == "http":
			down = append(down, f.Pod)
		case f.What == endpointsFile:
			hints = append(hints, "try: mkdir -p the folder, and run check as the user of serve")
		case f.What == tokenizer:
			hints = append(hints, "try: models[].tokenizer.source is to be a folder with the model's tokenizer files, or a name that the hub has")
		case f.What == "engine":
			hints = append(hints, r.stranger(f.Pod))
		case r.strange(f.Pod): // nothing else of it can be right
		default:
			hints = append(hints, fmt.Sprintf("try: look at %s of %s first%s", f.What, f.Pod, r.remedy(f)))
		}
	}
	switch {
	case len(down) == 1:
		hints = slices.Insert(hints, 0, "try: start the engine, or correct the address of "+down[0])
	case len(down) > 1:
		hints = slices.Insert(hints, 0, "try: start the engines, or correct the addresses of "+strings.Join(down[:min(len(down), 8)], ", "))
	}
	switch {
	case len(hints) > 0:
		return hints[:min(len(hints), maxHints)]
	case r.found(feed.SeverityError) > 0:
		return []string{"try: correct the errors first"}
	}
	return []string{"try: --fail-on error, if the warnings are meant so"}
}

// strange reports that a pod answers and is no engine.
func (r *Report) strange(pod string) bool {
	return slices.ContainsFunc(r.Facts, func(f feed.Fact) bool { return f.What == "engine" && f.Pod == pod && !f.OK && !f.Skipped })
}

// stranger is what to do about one.
func (r *Report) stranger(pod string) string {
	if slices.ContainsFunc(r.Facts, func(f feed.Fact) bool { return f.What == "model" && f.Pod == pod && len(f.Models) > 0 }) {
		return fmt.Sprintf("try: the addresses behind %s: it lists models and is no engine known here, as a router or gateway does; if it is one, pods[].engine names it", pod)
	}
	return fmt.Sprintf("try: another address for %s: something answers there that is no engine; pods[].address is the host and port of the engine's OpenAI API", pod)
}

// remedy is the hint of the finding that says the same as a fact.
func (r *Report) remedy(f feed.Fact) string {
	for _, x := range r.Findings {
		if f.Code != "" && x.Code == f.Code && x.Pod == f.Pod && x.Hint != "" {
			return ": " + x.Hint
		}
	}
	return ""
}
