package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

//go:generate go run . generate ../..

// newGenerate is for builders only: it writes what packages ship beside the
// binary.
func newGenerate() *cobra.Command {
	return &cobra.Command{
		Use:    "generate DIR",
		Short:  "Write man pages and completions into DIR/man and DIR/completions",
		Hidden: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misuse(cmd, fmt.Errorf("generate: found %d arguments; expected one, the folder to write to", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := generated(cmd.Root())
			if err != nil {
				return err
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(args[0], name), text, 0o644); err != nil {
					return fmt.Errorf("generate: %w", err)
				}
			}
			return nil
		},
	}
}

// generated returns path -> content; equal for equal sources.
func generated(root *cobra.Command) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"completions/eppctl.bash": func(b *bytes.Buffer) error { return bashCompletion(root, b, true) },
		"completions/_eppctl":     func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"completions/eppctl.fish": func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = b.Bytes()
	}
	return files, manPages(root, files)
}

// manPages adds a page for every command one would look up; cobra's own
// completion commands explain themselves.
func manPages(cmd *cobra.Command, files map[string][]byte) error {
	if cmd.Hidden || cmd.Name() == "completion" || cmd.Name() == "help" {
		return nil
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	// A fixed date keeps the pages reproducible; the version is the package's.
	date := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	var b bytes.Buffer
	if err := doc.GenMan(cmd, &doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Date: &date, Source: "eppctl", Manual: "eppctl manual"}, &b); err != nil {
		return fmt.Errorf("man page of %s: %w", name, err)
	}
	files["man/"+name+".1"] = []byte(manText(b.String()))
	for _, c := range cmd.Commands() {
		if err := manPages(c, files); err != nil {
			return err
		}
	}
	return nil
}

// manText makes of cobra's page one that reads like others: no values of switches,
// no reference to pages that do not exist, and two sections before the last.
func manText(page string) string {
	page = strings.ReplaceAll(page, "[=false]", "")
	page = strings.ReplaceAll(page, `\fBeppctl-completion(1)\fP, `, "")
	var b strings.Builder
	b.WriteString(".SH ENVIRONMENT\n.TP\nEPPCTL_*\nEvery flag has a variable: \\fB--admin-addr\\fP is EPPCTL_ADMIN_ADDR. A flag beats its variable.\n")
	b.WriteString(".SH EXIT STATUS\n")
	for _, e := range exitTable {
		fmt.Fprintf(&b, ".TP\n%d\n%s\n", e.code, e.meaning)
	}
	const last = ".SH SEE ALSO\n"
	before, after, ok := strings.Cut(page, last)
	if !ok {
		return page + b.String()
	}
	return before + b.String() + last + after
}

// bashWords is where cobra's script asks the bash-completion package for the words
// of the command line, and bashWordsAlone the same for a shell without it: not
// every server has that package, and an error at every TAB is worse than quotes
// that are not understood.
const (
	bashWords      = "    _get_comp_words_by_ref \"$@\" cur prev words cword\n"
	bashWordsAlone = `    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local line="${COMP_LINE:0:COMP_POINT}"
    read -r -a words <<< "${line}"
    if [[ ${line} == *[[:blank:]] ]]; then
        words+=("")
    fi
    cword=$((${#words[@]} - 1))
    cur="${words[cword]}"
    prev="${words[cword > 0 ? cword - 1 : 0]}"
`
)

// bashCompletion writes the script that both the package and "completion bash" give.
func bashCompletion(root *cobra.Command, w io.Writer, descriptions bool) error {
	var b bytes.Buffer
	if err := root.GenBashCompletionV2(&b, descriptions); err != nil {
		return err
	}
	text := b.String()
	if !strings.Contains(text, bashWords) {
		return errors.New("cobra's bash script has changed: it no longer asks for its words as it did")
	}
	_, err := io.WriteString(w, strings.Replace(text, bashWords, bashWordsAlone, 1))
	return err
}

// guardCompletion makes "completion bash" print that script.
func guardCompletion(root *cobra.Command) {
	cmd, _, err := root.Find([]string{"completion", "bash"})
	must(err)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		plain, err := cmd.Flags().GetBool("no-descriptions")
		if err != nil {
			return err
		}
		return bashCompletion(root, cmd.OutOrStdout(), !plain)
	}
	cmd.Long = strings.Replace(cmd.Long, "This script depends on the 'bash-completion' package.\nIf it is not installed already, you can install it via your OS's package manager.",
		"With the 'bash-completion' package it understands quotes; it works without.", 1)
}
