package explain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/view"
	"github.com/eppctl/eppctl/internal/testdata"
)

// printed is what explain -o json prints: serve's answer, and what is added here.
type printed struct {
	pick.Explanation
	// Try are commands that tell more, the most telling first.
	Try []Try `json:"try"`
	// Comparison is with an engine's token ids, where --compare-engine asked for it.
	Comparison *Comparison `json:"comparison,omitempty"`
}

// words are the strings that are one of a few.
var words = map[string][]string{
	"Explanation.APIVersion":      {"eppctl/v1"},
	"Explanation.Kind":            {"Explanation"},
	"Explanation.Source":          {"live", "recorded", "recording"},
	"Explanation.Unit":            {"s"},
	"Explanation.Better":          {"higher"},
	"ExplainedTokenizer.Provider": {"body", "native", "render", "tokenize", "bytes"},
	"ExplainedTokenizer.Status":   {"exact", "unverified"},
	"ExplainedPod.Verdict":        {"scored", "filtered"},
	"ExplainedPod.Telemetry":      {"fresh", "stale", "unknown"},
	"ExplainedPod.IndexState":     append([]string{view.NoEvents.String()}, syncStates()...),
	"ExplainedCircuit.State":      {"closed", "open", "half-open"},
	"ExplainedTerm.Name":          pick.TermNames(),
	"ExplainedPick.Outcome":       {"picked", "no-endpoint", "overloaded"},
	"ExplainedOverride.Kind":      {"input", "weight", "without"},
}

func syncStates() (list []string) {
	for _, s := range view.SyncStates {
		list = append(list, s.String())
	}
	return list
}

// TestSchemas: the committed schemas are those of the types, field by field.
func TestSchemas(t *testing.T) {
	const folder = "../../../docs/schema"
	testdata.Golden(t, filepath.Join(folder, "explain.json"), testdata.Schema(t, "eppctl explain -o json", printed{}, words))
	replicas := map[string][]string{"Replicas.APIVersion": {"eppctl/v1"}, "Replicas.Kind": {"Replicas"}, "ExplainedPick.Outcome": words["ExplainedPick.Outcome"]}
	testdata.Golden(t, filepath.Join(folder, "replicas.json"), testdata.Schema(t, "eppctl explain --against ADDR -o json", Replicas{}, replicas))
}

// TestPrintedIsValid: what explain prints, of cards that decisions have written and of
// other answers, is what the schema says.
func TestPrintedIsValid(t *testing.T) {
	files, err := filepath.Glob("../../core/pick/testdata/cards/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v: %v", files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, got := pipe()
		c := Command{RequestID: "x", Format: "json"}
		_ = c.Run(t.Context(), &asker{body: b}, s) // no pod is no error here
		testdata.Valid(t, "explain.json", got.Bytes())
		text, _ := against(t, "json", b)
		testdata.Valid(t, "replicas.json", []byte(text))
		if strings.Contains(got.String(), "NaN") {
			t.Errorf("%s: a number that is none", file)
		}
	}
}
