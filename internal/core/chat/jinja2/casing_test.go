package jinja2

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestCasedAgainstPython: which characters have which case, and where a word goes on, is as
// Python says it, of letters and of what else has case.
func TestCasedAgainstPython(t *testing.T) {
	p := startPython(t)
	const source = "{{ c.isupper() }} {{ c.islower() }} {{ c is upper }} {{ c is lower }} {{ ('a' ~ c ~ 'bc').title() }}"
	for _, c := range []string{"A", "a", "1", "Ж", "ж", "ǅ", "Ⅷ", "ⅷ", "Ⓐ", "ⓐ", "ª", "ʰ", "中", "ß", "Aǅ", "aǅ", "AⅧ", "Aª", "Ⅷa", "🅰", "x中", "²", "Ω", "ͅ"} {
		vars, err := json.Marshal(map[string]string{"c": c})
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprintf("%U", []rune(c)), func(t *testing.T) {
			if v, why := against(t, p, source, vars); v != same {
				t.Error(c, why)
			}
		})
	}
}
