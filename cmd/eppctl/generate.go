package main

import (
	"bytes"
	"errors"
	"fmt"
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
				return &flagError{cmd, errors.New("generate takes one argument, the folder to write to")}
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
		"completions/eppctl.bash": func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) },
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
	b.WriteString(".SH EXIT STATUS\n")
	for _, e := range exitTable {
		fmt.Fprintf(&b, ".TP\n%d\n%s\n", e.code, e.meaning)
	}
	files["man/"+name+".1"] = b.Bytes()
	for _, c := range cmd.Commands() {
		if err := manPages(c, files); err != nil {
			return err
		}
	}
	return nil
}
