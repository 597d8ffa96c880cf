package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/core/spelling"
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
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		everyCommand(root, plainUsage)
	}
	root.SetIn(in)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(context.Background())
	format := cmd.Flag("output")
	return finish(err, a.streams, format != nil && format.Value.String() == "json")
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "eppctl COMMAND",
		Short: "Endpoint picker for LLM fleets behind Envoy",
		Long: `eppctl sends each request to the pod that already holds its KV blocks.

"eppctl serve" is the picker: engines tell it over ZeroMQ what they cache, Envoy
asks it over ext_proc where a request goes. The other commands show what it sees
and why it decides as it does.

Every flag has an environment variable: --admin-addr is EPPCTL_ADMIN_ADDR. A flag
beats its variable, and that the configuration file.`,
		Version:               build().Version.Version,
		SilenceErrors:         true,
		SilenceUsage:          true,
		DisableAutoGenTag:     true,
		DisableFlagsInUseLine: true,
		Args:                  noArgs,
		RunE:                  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := bindEnv(cmd.Flags(), a.getenv); err != nil {
				return misuse(cmd, err)
			}
			if err := oneOf(cmd, "color", out.Modes()); err != nil {
				return err
			}
			return a.streams.SetColor(a.color)
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return misuse(cmd, plainly(cmd.Flags(), err)) })
	root.PersistentFlags().StringVar(&a.color, "color", "auto", "colour: auto, always, never")
	enum(root, "color", out.Modes())
	root.AddCommand(
		newServe(a, nil), newExplain(a, nil), newTap(a, nil), newTop(a, nil), newPicks(a, nil), newCheck(a, nil), newReplay(a, nil), newEnvoyConfig(a), newSim(a, nil), newTokenize(a, nil), newVersion(a), newGenerate(),
	)
	everyCommand(root, noFileNames)
	root.SetVersionTemplate(build().line())
	root.InitDefaultVersionFlag()
	root.InitDefaultCompletionCmd()
	guardCompletion(root)
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
	root.SetHelpTemplate(root.HelpTemplate() + "\n" + exitText() + "\n")
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) { // cobra's would complain of a reader that has seen enough
		var b bytes.Buffer
		cmd.SetOut(&b)
		help(cmd, args)
		cmd.SetOut(a.streams.Out)
		_, _ = a.streams.Out.Write(b.Bytes())
	})
	return root
}

// usageTemplate is cobra's, without a second line for the root, whose first one
// names the command already.
func usageTemplate(text string) string {
	text = strings.Replace(text, "{{if .HasAvailableSubCommands}}\n  {{.CommandPath}} [command]", "{{if and .HasParent .HasAvailableSubCommands}}\n  {{.CommandPath}} COMMAND", 1)
	return strings.ReplaceAll(text, "[command]", "COMMAND")
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

// hangable returns a context that SIGHUP ends: the session is over, so a recording must
// be finished and a terminal given back. nohup has it ignored, and it stays so.
func hangable(parent context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return parent, func() {}
	}
	return signal.NotifyContext(parent, syscall.SIGHUP)
}

// interruptible returns a context that the first SIGINT, SIGTERM or SIGHUP ends, and
// what is being read from stdin with it.
func (a *app) interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, hung := hangable(parent)
	ctx, interrupted := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	stop := func() { interrupted(); hung() }
	if f, ok := a.streams.In.(*os.File); ok {
		in := &input{ctx: ctx, file: f}
		if a.streams.InTTY {
			in.note = a.streams.Err
		}
		a.streams.In = in
	}
	return ctx, stop
}

// noArgs refuses arguments, as a usage error.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasAvailableSubCommands() {
		text := fmt.Sprintf("unknown command %q", args[0])
		var names []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		if near := spelling.Nearest(args[0], names); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
		return misuse(cmd, errors.New(text))
	}
	return misuse(cmd, fmt.Errorf("%s: found %q; expected no argument", cmd.CommandPath(), args[0]))
}

// must is for mistakes in the program itself, found by its first test.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
