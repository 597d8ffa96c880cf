package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// writeProperties writes what a pattern can ask for besides categories.
func writeProperties(b *bytes.Buffer, dir string) {
	derived := sets(dir, "DerivedCoreProperties", func(s span) string { return s.Property })
	for _, name := range []string{"Alphabetic", "Lowercase", "Uppercase"} {
		fmt.Fprintf(b, "var %s = []Range{", strings.ToLower(name))
		listSet(b, derived[name])
		b.WriteString("}\n\n")
	}
	scripts := sets(dir, "Scripts", func(s span) string { return s.Script })
	b.WriteString("// scripts are by their long names, as loosely as patterns write them.\nvar scripts = map[string][]Range{\n")
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		fmt.Fprintf(b, "%q: {", strings.ToLower(strings.ReplaceAll(name, "_", "")))
		listSet(b, scripts[name])
		b.WriteString("},\n")
	}
	b.WriteString("}\n\n")
	writeCategoryNames(b, dir)
	writeFolds(b, dir)
}

// sets are the characters of each value that name gives a span.
func sets(dir, file string, name func(span) string) map[string][]bool {
	out := map[string][]bool{}
	for _, x := range ranges(dir, file) {
		set := out[name(x)]
		if set == nil {
			set = make([]bool, runes)
			out[name(x)] = set
		}
		each(x.Range, func(r rune) { set[r] = true })
	}
	return out
}

func listSet(b *bytes.Buffer, set []bool) {
	for r := 0; r < runes; r++ {
		if !set[r] {
			continue
		}
		first := r
		for r+1 < runes && set[r+1] {
			r++
		}
		fmt.Fprintf(b, "{%#x, %#x},", first, r)
	}
}

func writeCategoryNames(b *bytes.Buffer, dir string) {
	var list []struct{ Property, ShortName, LongName, Alias string }
	must(json.Unmarshal(member(dir, "PropertyValueAliases"), &list))
	b.WriteString("// categoryNames are the other names of categories.\nvar categoryNames = map[string]string{\n")
	for _, x := range list {
		if x.Property != "gc" {
			continue
		}
		for _, name := range []string{x.LongName, x.Alias} {
			if name != "" {
				fmt.Fprintf(b, "%q: %q,\n", strings.ToLower(strings.ReplaceAll(name, "_", "")), x.ShortName)
			}
		}
	}
	b.WriteString("}\n\n")
}

func writeFolds(b *bytes.Buffer, dir string) {
	var list []struct{ Codepoint, Status, Mapping string }
	must(json.Unmarshal(member(dir, "CaseFolding"), &list))
	simple, full := map[rune]string{}, map[rune]string{}
	for _, x := range list {
		to := ""
		for _, w := range strings.Fields(x.Mapping) {
			to += string(hex(w))
		}
		switch x.Status {
		case "C", "S":
			simple[hex(x.Codepoint)] = to
		case "F":
			full[hex(x.Codepoint)] = to
		}
	}
	b.WriteString("// simpleFolds are characters and what each is without regard to case.\nvar simpleFolds = []fold{\n")
	for i, r := range slices.Sorted(maps.Keys(simple)) {
		fmt.Fprintf(b, "{%#x, %#x},", r, []rune(simple[r])[0])
		if i%8 == 7 {
			b.WriteString("\n")
		}
	}
	b.WriteString("}\n\n// fullFolds are those that are several characters without regard to case.\nvar fullFolds = []decomposition{\n")
	for i, r := range slices.Sorted(maps.Keys(full)) {
		fmt.Fprintf(b, "{%#x, %s},", r, strconv.QuoteToASCII(full[r]))
		if i%6 == 5 {
			b.WriteString("\n")
		}
	}
	b.WriteString("}\n")
}
