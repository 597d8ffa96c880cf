package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eppctl/eppctl/internal/inspect/out"
)

// app is what every command gets from outside.
type app struct {
	streams *out.Streams
	getenv  func(string) string
	color   string
}

// run is the whole program but the exit itself.
func run(args []string, in io.Reader, stdout, stderr io.Writer, getenv func(string) string) int {
	// A closed pipe then ends a write with EPIPE instead of ending the process.
	signal.Ignore(syscall.SIGPIPE)
	a := &app{streams: out.NewStreams(in, stdout, stderr, getenv), getenv: getenv}
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(context.Background())
	format := cmd.Flag("output")
	return finish(err, a.streams, format != nil && format.Value.String() == "json")
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "eppctl",
		Short: "Endpoint picker for LLM fleets behind Envoy",
		Long: `eppctl sends each request to the pod that already holds its KV blocks.

"eppctl serve" is the picker: engines tell it over ZeroMQ what they cache, Envoy
asks it over ext_proc where a request goes. The other commands show what it sees
and why it decides as it does.`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		Args:              noArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := bindEnv(cmd.Flags(), a.getenv); err != nil {
				return &flagError{cmd, err}
			}
			if err := a.streams.SetColor(a.color); err != nil {
				return &flagError{cmd, err}
			}
			return nil
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return &flagError{cmd, err} })
	root.PersistentFlags().StringVar(&a.color, "color", "auto", "colour: auto, always, never")
	enum(root, "color", out.Modes())
	root.AddCommand(
		newServe(a, nil), newExplain(a, nil), newCheck(a, nil), newEnvoyConfig(a), newSim(a, nil), newVersion(a), newGenerate(),
	)
	root.InitDefaultCompletionCmd()
	root.SetHelpTemplate(root.HelpTemplate() + "\n" + exitText() + "\n")
	return root
}

// exitText is the table of exit codes for help.
func exitText() string {
	var b strings.Builder
	b.WriteString("Exit codes:")
	for _, e := range exitTable {
		fmt.Fprintf(&b, "\n  %-4d %s", e.code, e.meaning)
	}
	return b.String()
}

// bindEnv gives every flag that was not set the value of its variable:
// --admin-addr is EPPCTL_ADMIN_ADDR.
func bindEnv(flags *pflag.FlagSet, getenv func(string) string) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "EPPCTL_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v := getenv(name); v != "" && !f.Changed && f.Name != "help" && err == nil {
			if e := flags.Set(f.Name, v); e != nil {
				err = fmt.Errorf("environment variable %s: %w", name, e)
			}
		}
	})
	return err
}

// interruptible returns a context that the first SIGINT or SIGTERM ends.
func interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
}

// enum completes a flag from a fixed list.
func enum(cmd *cobra.Command, flag string, values []string) {
	must(cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)))
}

// oneOf refuses a flag value that is not on its list.
func oneOf(cmd *cobra.Command, flag string, values []string) error {
	v := cmd.Flag(flag).Value.String()
	for _, x := range values {
		if v == x {
			return nil
		}
	}
	return &flagError{cmd, fmt.Errorf("--%s %q: want one of %s", flag, v, strings.Join(values, ", "))}
}

// noArgs refuses arguments, as a usage error.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasAvailableSubCommands() {
		text := fmt.Sprintf("unknown command %q", args[0])
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += fmt.Sprintf("; did you mean %q?", near[0])
		}
		return &flagError{cmd, fmt.Errorf("%s", text)}
	}
	return &flagError{cmd, fmt.Errorf("%s takes no argument, got %q", cmd.CommandPath(), args[0])}
}

// must is for mistakes in the program itself, found by its first test.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
