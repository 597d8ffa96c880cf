package explain

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect"
)

// supposed is what explain prints and returns of an answer whose what-if was changed.
func supposed(t *testing.T, change func(x *pick.Explanation)) (string, error) {
	t.Helper()
	_, x := answer(t, decided)
	change(x)
	b, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	s, got := pipe()
	err = (&Command{Input: Input{Prompt: "x"}, Format: "table"}).Run(t.Context(), &asker{body: b}, s)
	return got.String(), err
}

// A supposition that leaves no pod is answered with no, and shown all the same.
func TestWhatIfNobody(t *testing.T) {
	text, err := supposed(t, func(x *pick.Explanation) {
		why := "all-filtered"
		x.WhatIf.Pick = pick.ExplainedPick{Outcome: "refused", Why: &why}
	})
	var e *inspect.Error
	if !errors.As(err, &e) || e.Kind != inspect.Negative || e.Code != "E_NO_ELIGIBLE_POD" || !strings.Contains(e.What, "all-filtered") {
		t.Errorf("err = %v", err)
	}
	if !strings.Contains(text, "THEN    pod-0 -> none (refused)") {
		t.Error(text)
	}
}

// Whoever is picked as before stays: no arrow points from a pod to itself.
func TestWhatIfStays(t *testing.T) {
	text, err := supposed(t, func(x *pick.Explanation) { x.WhatIf.Pick = x.Pick })
	if err != nil || !strings.Contains(text, "THEN    pod-0 stays") || strings.Contains(text, "pod-0 -> pod-0") {
		t.Errorf("%v\n%s", err, text)
	}
}
