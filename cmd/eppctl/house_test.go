package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/inspect/out"
)

// commands are all that a user sees, as one types them.
func commands(cmd *cobra.Command) (list [][]string) {
	if !hasPage(cmd) {
		return nil
	}
	list = append(list, strings.Fields(cmd.CommandPath())[1:])
	for _, c := range cmd.Commands() {
		list = append(list, commands(c)...)
	}
	return list
}

// The rules of the house hold for every command: help on stdout with examples,
// mistakes on stderr with the way on, and no complaint about a closed pipe.
func TestHouseRules(t *testing.T) {
	root := newRoot(&app{streams: &out.Streams{}, getenv: func(string) string { return "" }})
	all := commands(root)
	if len(all) < 12 {
		t.Errorf("only %d commands: %q", len(all), all)
	}
	for _, args := range all {
		path := strings.Join(append([]string{"eppctl"}, args...), " ")
		t.Run(path, func(t *testing.T) {
			with := func(more ...string) []string { return append(args[:len(args):len(args)], more...) }
			code, text, errs := try(nil, nil, with("--help")...)
			if code != exitOK || errs != "" || !strings.Contains(text, "Usage:\n  "+path) || !strings.Contains(text, "\nExit codes:\n") {
				t.Errorf("help: code %d, stderr %q:\n%s", code, errs, text)
			}
			if len(args) > 0 && !strings.Contains(text, "\nExamples:\n") {
				t.Errorf("help without examples:\n%s", text)
			}
			if code, _, errs := try(&brokenPipe{}, nil, with("--help")...); code != exitOK || errs != "" {
				t.Errorf("closed pipe: code %d, stderr %q", code, errs)
			}
			if code, text, errs := try(nil, nil, with("--no-such-flag")...); code != exitUsage || text != "" || !strings.HasSuffix(errs, "\n  see: "+path+" --help\n") {
				t.Errorf("unknown flag: code %d, stdout %q, stderr %q", code, text, errs)
			}
			cmd, _, err := root.Find(args)
			if err != nil {
				t.Fatal(err)
			}
			if f := cmd.Flag("output"); f == nil {
				return
			}
			if code, text, errs := try(nil, nil, with("--output", "no-such-format")...); code != exitUsage || text != "" || !strings.Contains(errs, `--output: found "no-such-format"; expected one of table`) {
				t.Errorf("unknown format: code %d, stdout %q, stderr %q", code, text, errs)
			}
		})
	}
}
