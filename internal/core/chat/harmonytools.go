package chat

import (
	"strings"

	"github.com/eppctl/eppctl/internal/core/chat/jinja2"
)

// harmonyTools is the section of a developer's message that declares functions
// (openai-harmony, template_tools_section). vLLM 0.23.0 fails for one without a description.
func harmonyTools(tools []jinja2.Value, release Release) (string, error) {
	lines := []string{"# Tools\n\n## functions\n", "namespace functions {\n"}
	used := 0
	for _, tool := range tools {
		f := member(tool, "function")
		if member(f, "description").IsNone() && release != (Release{}) && release.Before(0, 24) {
			return "", rejected("a function has no description")
		}
		for _, line := range rustLines(text(f, "description")) {
			lines = append(lines, "// "+line)
		}
		parameters := member(f, "parameters")
		if parameters.IsNone() {
			lines = append(lines, "type "+text(f, "name")+" = () => any;\n")
			continue
		}
		w := schemaWriter{used: used}
		w.b.WriteString("type " + text(f, "name") + " = (_: ")
		if err := w.schema(parameters, 0, ""); err != nil {
			return "", err
		}
		w.b.WriteString(") => any;\n")
		lines = append(lines, w.b.String())
		used += w.b.Len()
	}
	return strings.Join(append(lines, "} // namespace functions"), "\n"), nil
}

// rustLines are the lines of a text as Rust's str::lines has them: none behind the last
// line break, and a carriage return before one belongs to it.
func rustLines(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.Split(s, "\n")
	last := len(lines) - 1
	for i := range last {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	if lines[last] == "" {
		lines = lines[:last]
	}
	return lines
}
