package tap

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// unanswered is the error of a run that went well and had nothing to show for it:
// nobody was there, or no pod is called so. The cause is the error of one that did
// not. Who ends a stream by hand had it for as long as they wanted, and is told on
// stderr alone that nobody was there; a replay that was asked for stays an error.
func (r *run) unanswered(cause error, byHand bool) error {
	if cause != nil {
		return nil
	}
	if _, past := r.Source.(*File); past {
		return r.nobody()
	}
	if _, live := r.Source.(*Engines); !live || !r.Demand {
		return nil
	}
	a := r.account
	if a.PodsEver == 0 {
		what := "no engine was reached"
		if a.PodsWanted == 0 {
			what = "no engine has dialled"
		}
		what = fmt.Sprintf("%s in %.1fs", what, r.took().Seconds())
		const hint = "try: eppctl tap --check with the same flags, which looks for the cause"
		if byHand {
			fmt.Fprintf(r.s.Err, "tap: %s\n  %s\n", what, hint)
			return nil
		}
		return &inspect.Error{Kind: inspect.Unreachable, Code: "E_CONNECT", What: what, Hint: hint}
	}
	var failed []string
	for p, why := range a.unfilled {
		failed = append(failed, podName(p)+": "+why)
	}
	if len(failed) == 0 {
		return nil
	}
	slices.Sort(failed)
	return &inspect.Error{
		Kind: inspect.Incomplete, Code: "E_REPLAY", What: fmt.Sprintf("the last replay of %s failed", out.Plural(len(failed), "stream")),
		Why: strings.Join(failed, "\n"), Hint: "try: eppctl tap --check --replay",
	}
}

// nobody is the error about patterns that no pod of a recording fits.
func (r *run) nobody() error {
	pods := slices.Sorted(maps.Keys(r.account.wanted))
	for _, pattern := range r.Pods {
		if slices.ContainsFunc(pods, func(name string) bool { return recording.Glob(pattern, name) }) {
			continue
		}
		return NoSuchPod(pattern, pods)
	}
	return nil
}

// NoSuchPod is the error about a pattern that none of the pods fits.
func NoSuchPod(pattern string, pods []string) error {
	e := &inspect.Error{Kind: inspect.Usage, Code: "E_USAGE", What: fmt.Sprintf("--pod: found %q, which no pod is called", pattern)}
	if len(pods) > 0 {
		e.Hint = "there are: " + strings.Join(pods[:min(len(pods), listed)], ", ")
		if more := len(pods) - listed; more > 0 {
			e.Hint += fmt.Sprintf(", and %d more", more)
		}
	}
	return e
}

// listed is how many names an error lists: a few lines of them.
const listed = 32
