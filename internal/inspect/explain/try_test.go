package explain

import (
	"slices"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/view"
)

func leader(name string, change func(*pick.ExplainedPod)) pick.ExplainedPod {
	rank := 1
	p := pick.ExplainedPod{Name: name, Addr: "10.0.0.1:8000", Rank: &rank, Telemetry: "fresh"}
	if change != nil {
		change(&p)
	}
	return p
}

func TestTries(t *testing.T) {
	word := func(s string) *string { return &s }
	well := pick.Explanation{
		Pods: []pick.ExplainedPod{leader("a", nil)},
		Flip: &[]pick.ExplainedFlip{{Pod: word("a"), Field: "queue", Now: 2, At: 4, Winner: "b"}},
	}
	for name, tc := range map[string]struct {
		x    pick.Explanation
		want []string
	}{
		"all well":                 {well, []string{"eppctl explain -f x.json --set a.queue=4"}},
		"nothing known":            {pick.Explanation{}, nil},
		"no tokenizer":             {pick.Explanation{Unmatched: word("tokenizer-missing")}, []string{"eppctl check"}},
		"a body nobody can read":   {pick.Explanation{Unmatched: word("body-not-json")}, nil},
		"a flip of a weight alone": {pick.Explanation{Flip: &[]pick.ExplainedFlip{{Field: "alpha", Now: 1, At: 0.5}}}, []string{"eppctl explain -f x.json --weight alpha=0.5"}},
		"no event ever": {pick.Explanation{Pods: []pick.ExplainedPod{leader("a", func(p *pick.ExplainedPod) {
			p.Reason, p.IndexWhy = word("no-events-ever"), word("no-events-ever")
		})}}, []string{"eppctl tap --check --pod a"}},
		"lost batches, an old page": {pick.Explanation{Pods: []pick.ExplainedPod{leader("a", func(p *pick.ExplainedPod) {
			p.IndexWhy, p.Telemetry = word("history-lost"), "stale"
		})}}, []string{"eppctl tap --replay -e --stats --pod a", "eppctl check a"}},
		"left out": {pick.Explanation{Pods: []pick.ExplainedPod{
			{Name: "b", Filter: &pick.ExplainedFilter{Name: "failing"}}, {Name: "c", Filter: &pick.ExplainedFilter{Name: "draining"}},
		}}, []string{"eppctl check b"}},
		"other ids": {pick.Explanation{
			Pods: []pick.ExplainedPod{leader("a", nil)}, Tokenizer: pick.ExplainedTokenizer{Parity: &view.Parity{State: "failed", Why: "parity-probe-differs"}},
		}, []string{"eppctl explain -f x.json --compare-engine http://10.0.0.1:8000"}},
		"a name for the shell": {pick.Explanation{Pods: []pick.ExplainedPod{leader("a'; rm -rf /", func(p *pick.ExplainedPod) {
			p.IndexWhy = word("connected-silent")
		})}}, []string{`eppctl tap --check --pod 'a'\''; rm -rf /'`}},
		"a name of the templates": {pick.Explanation{Pods: []pick.ExplainedPod{leader("REQUEST", func(p *pick.ExplainedPod) {
			p.IndexWhy = word("connected-silent")
		})}}, []string{"eppctl tap --check --pod REQUEST"}},
	} {
		var got []string
		for _, x := range tries(&tc.x, "eppctl explain -f x.json", "") {
			got = append(got, x.Command)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestTriesConfig: what reads a configuration is told where it is, and nothing else.
func TestTriesConfig(t *testing.T) {
	why := "connected-silent"
	x := pick.Explanation{Pods: []pick.ExplainedPod{leader("a", func(p *pick.ExplainedPod) { p.IndexWhy = &why })}}
	if got := tries(&x, "eppctl explain ...", "--config REQUEST"); len(got) != 1 || got[0].Command != "eppctl tap --check --pod a --config REQUEST" {
		t.Errorf("%+v", got)
	}
	x = pick.Explanation{Flip: &[]pick.ExplainedFlip{{Field: "alpha", Now: 1, At: 0.5}}}
	if got := tries(&x, "eppctl explain ...", "--config a"); len(got) != 1 || got[0].Command != "eppctl explain ... --weight alpha=0.5" {
		t.Errorf("%+v", got)
	}
}

func TestCommand(t *testing.T) {
	for want, c := range map[string]Command{
		"eppctl explain --request-id 7d0e":                      {RequestID: "7d0e"},
		"eppctl explain -f 'my chat.json' --addr 10.0.0.1:9004": {Input: Input{File: "my chat.json"}, Typed: []string{"--addr 10.0.0.1:9004"}},
		"eppctl explain ...":                                    {Input: Input{Prompt: "secret"}},
	} {
		if got := c.command(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
