package prompt

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/eppctl/eppctl/internal/core/reason"
)

func TestNamesAreClipped(t *testing.T) {
	fits, long := strings.Repeat("x", MaxName), strings.Repeat("é", MaxName)
	for _, c := range []struct {
		body         string
		path         string
		model, lora  int
		unmatched    reason.Code
		tokens, cut  bool
		defaultModel string
	}{
		{body: `{"model":"` + fits + `","prompt":[1,2,3]}`, path: "/v1/completions", model: MaxName, tokens: true},
		{body: `{"model":"` + fits + `x","prompt":[1,2,3]}`, path: "/v1/completions", model: MaxName, unmatched: reason.NameTooLong},
		{body: `{"model":"` + long + `","prompt":"hi"}`, path: "/v1/completions", model: MaxName, unmatched: reason.NameTooLong},
		{body: `{"lora_path":"` + long + `","input_ids":[1,2,3]}`, path: "/generate", lora: MaxName, unmatched: reason.NameTooLong},
		{body: `{"model":"` + long + `","prompt":[1,2`, path: "/v1/completions", model: MaxName, unmatched: reason.NameTooLong, cut: true},
	} {
		r, problem := Parse(c.path, "application/json", []byte(c.body), Limits{Cut: c.cut})
		if problem != nil {
			t.Fatalf("%.60s: %v", c.body, problem)
		}
		if len(r.Model) > c.model || len(r.Adapter) > c.lora || r.Unmatched != c.unmatched || (r.TokenIDs != nil) != c.tokens || r.Unmatched != "" && r.Shape != 0 {
			t.Errorf("%.60s: %d bytes of model, %d of adapter, unmatched %q, %d ids", c.body, len(r.Model), len(r.Adapter), r.Unmatched, len(r.TokenIDs))
		}
		if c.unmatched != "" && !strings.HasSuffix(r.Model+r.Adapter, "…") || !utf8.ValidString(r.Model+r.Adapter) {
			t.Errorf("%.60s: clipped to %q", c.body, r.Model+r.Adapter)
		}
	}
}
