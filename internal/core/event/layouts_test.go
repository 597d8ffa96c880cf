package event

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The list is that of the README, and nothing the decoder names is missing.
func TestLayouts(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	_, table, _ := strings.Cut(string(text), "| Layout | Bytes | Who writes it |\n|---|---|---|\n")
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| `") {
			break
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
			told = append(told, m[1])
		}
	}
	other := append(otherArrays[:], "array13+")
	told = slices.DeleteFunc(told, func(s string) bool { return slices.Contains(other, s) })
	have := Layouts()
	slices.Sort(told)
	slices.Sort(have)
	if !slices.Equal(told, have) {
		t.Errorf("the README has\n%q\nthe list\n%q", told, have)
	}
	source, err := os.ReadFile("layout.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`"([a-z-]+[0-9]*(/[a-z0-9]+)?( \([^)]+\))?)"`).FindAllStringSubmatch(string(source), -1) {
		if !slices.Contains(have, m[1]) && !slices.Contains(other, m[1]) {
			t.Errorf("the decoder names %q, the list does not", m[1])
		}
	}
}
