package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
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
		"completions/eppctl.ps1":  func(b *bytes.Buffer) error { return root.GenPowerShellCompletionWithDesc(b) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = b.Bytes()
	}
	manPages(root, files)
	return files, nil
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
	shells := cmd.Parent()
	shells.Args, shells.RunE = noArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() } // else an unknown shell is help and success
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
