package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manDate is fixed, so that pages are equal for equal sources; the version is the
// package's.
const manDate = "2026-11-01"

// manPages adds a page for every command one would look up; cobra's own
// completion commands explain themselves.
func manPages(cmd *cobra.Command, files map[string][]byte) {
	if !hasPage(cmd) {
		return
	}
	files["man/"+pageName(cmd)+".1"] = []byte(manPage(cmd))
	for _, c := range cmd.Commands() {
		manPages(c, files)
	}
}

func hasPage(cmd *cobra.Command) bool {
	return !cmd.Hidden && cmd.Name() != "completion" && cmd.Name() != "help"
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is a command's help in the form of man(7).
func manPage(cmd *cobra.Command) string {
	var p roff
	cmd.InitDefaultHelpFlag()
	fmt.Fprintf(&p, ".TH %s 1 %s eppctl \"eppctl manual\"\n", strings.ToUpper(pageName(cmd)), manDate)
	p.section("NAME", roffText(pageName(cmd))+` \- `+roffText(cmd.Short))
	use := cmd.UseLine()
	if cmd.HasAvailableFlags() {
		use = strings.TrimSuffix(use, " [flags]") + " [FLAG]..."
	}
	p.section("SYNOPSIS", ".nh\n"+bold(use)+"\n.hy") // a name must not be broken
	long := cmd.Long
	if long == "" {
		long = cmd.Short
	}
	p.WriteString(".SH DESCRIPTION\n")
	p.text(long)
	p.flags("OPTIONS", cmd.NonInheritedFlags())
	p.flags("GLOBAL OPTIONS", cmd.InheritedFlags())
	p.WriteString(".SH ENVIRONMENT\n")
	p.entry(bold("EPPCTL_*"), "Every flag has a variable: --admin-addr is EPPCTL_ADMIN_ADDR. A flag beats its variable.")
	p.entry(bold("NO_COLOR"), "Where it is not empty, nothing is coloured unless --color says so.")
	p.WriteString(".SH EXIT STATUS\n")
	for _, e := range exitTable {
		p.entry(fmt.Sprint(e.code), e.meaning)
	}
	if cmd.HasExample() {
		p.WriteString(".SH EXAMPLES\n")
		p.verbatim(cmd.Example)
	}
	p.section("SEE ALSO", strings.Join(related(cmd), ",\n"))
	return p.String()
}

// related names the pages of the command above and of those below.
func related(cmd *cobra.Command) (refs []string) {
	add := func(c *cobra.Command) { refs = append(refs, bold(pageName(c))+"(1)") }
	if cmd.HasParent() {
		add(cmd.Parent())
	}
	for _, c := range cmd.Commands() {
		if hasPage(c) {
			add(c)
		}
	}
	return refs
}

// roff is a page that is being written.
type roff struct{ strings.Builder }

func (p *roff) section(title, body string) { fmt.Fprintf(p, ".SH %s\n%s\n", title, body) }

// entry is a term, in roff already, and what is said of it.
func (p *roff) entry(term, text string) { fmt.Fprintf(p, ".TP\n%s\n%s\n", term, roffText(text)) }

// text writes paragraphs; those that are indented stay as they are.
func (p *roff) text(text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			p.WriteString(".PP\n")
		}
		if strings.HasPrefix(paragraph, " ") {
			p.verbatim(paragraph)
			continue
		}
		for line := range strings.Lines(paragraph) {
			p.WriteString(roffText(strings.TrimRight(line, "\n")) + "\n")
		}
	}
}

func (p *roff) verbatim(text string) {
	p.WriteString(".EX\n")
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		p.WriteString(roffText(strings.TrimRight(line, "\n")) + "\n")
	}
	p.WriteString(".EE\n")
}

func (p *roff) flags(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.WriteString(".SH " + title + "\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		term := bold("--" + f.Name)
		if f.Shorthand != "" {
			term = bold("-"+f.Shorthand) + ", " + term
		}
		switch {
		case f.NoOptDefVal != "" && value != "": // a value is possible and must be attached
			term += "[=" + italic(value) + "]"
		case value != "":
			term += " " + italic(value)
		}
		if text := defaultText(f); text != "" {
			usage += " (default " + text + ")"
		}
		p.entry(term, usage)
	})
}

// defaultText is a default that says something.
func defaultText(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "false", "0", "0s", "0B", "[]":
		return ""
	}
	return f.DefValue
}

func bold(text string) string   { return `\fB` + roffText(text) + `\fR` }
func italic(text string) string { return `\fI` + roffText(text) + `\fR` }

// roffText escapes a line: what roff would read as its own, hyphens that must stay
// what is typed, and characters of which not every roff knows the encoding.
func roffText(line string) string {
	var b strings.Builder
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		b.WriteString(`\&`)
	}
	for _, r := range line {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r > 126:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
