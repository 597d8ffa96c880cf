// Terms writes the list of terms of the score, and the sum of them, from the line that
// registers them: go generate in internal/core/pick. The sum names every term, since a
// call through a table, per pod, costs as much as a term.
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/format"
	"os"
	"strings"
	"text/template"
)

// output lies in the package that has the terms.
const output = "score.go"

//go:embed score.tmpl
var text string

var score = template.Must(template.New(output).Funcs(template.FuncMap{"lower": strings.ToLower}).Parse(text))

func main() {
	source, err := generate(os.Args[1:])
	if err == nil {
		err = os.WriteFile(output, source, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "terms:", err)
		os.Exit(1)
	}
}

// generate returns the Go source for terms of these names, as they stand in constants.
func generate(names []string) ([]byte, error) {
	var b bytes.Buffer
	if err := score.Execute(&b, names); err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	return format.Source(b.Bytes())
}
