package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eppctl/eppctl/internal/core/spelling"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

// Flags and their variables: what both have in common, and how a wrong value of
// either is told.

// envNote marks a flag whose value came from its variable.
const envNote = "eppctl_environment"

// variable is the name of a flag's environment variable: --admin-addr is
// EPPCTL_ADMIN_ADDR.
func variable(flag string) string {
	return "EPPCTL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// bindEnv gives every flag that was not set the value of its variable.
func bindEnv(flags *pflag.FlagSet, getenv func(string) string) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := variable(f.Name)
		v := getenv(name)
		if v == "" || f.Changed || f.Name == "help" || f.Name == "version" {
			return
		}
		must(flags.SetAnnotation(f.Name, envNote, []string{name}))
		if err := flags.Set(f.Name, v); err != nil {
			errs = append(errs, plainly(flags, err))
		}
	})
	return errors.Join(errs...)
}

// origin is what a message about a flag's value blames: the flag, or the variable
// that set it.
func origin(f *pflag.Flag) string {
	if from := f.Annotations[envNote]; len(from) > 0 {
		return from[0]
	}
	return "--" + f.Name
}

// wrongValue is the message about a value that a flag does not take.
func wrongValue(f *pflag.Flag, found, expected string) error {
	return fmt.Errorf("%s: found %q; expected %s", origin(f), found, expected)
}

// expected says in words what a flag's type takes.
var expected = map[string]string{
	"duration": "a duration such as 250ms or 2s", "int": "a whole number", "uint64": "a whole number of 0 or more", "float64": "a number",
	"bool": "true or false", "size": "a size such as 32MiB",
}

// plainly rewords what the flag parser says.
func plainly(flags *pflag.FlagSet, err error) error {
	var value *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	switch {
	case errors.As(err, &bare): // what it is for tells whether another one was meant
		_, usage := pflag.UnquoteUsage(bare.GetFlag())
		return fmt.Errorf("%w: %s", err, usage)
	case errors.As(err, &value):
		f := value.GetFlag()
		if f.Value.Type() == filterType { // it says best what it takes
			return fmt.Errorf("%s: %w", origin(f), errors.Unwrap(value))
		}
		want := expected[f.Value.Type()]
		if f.Name == showTokens { // ids, as --tokens took them once
			want = "no value; token ids go behind --token-ids"
		}
		if want == "" {
			want = "a " + f.Value.Type()
		}
		return wrongValue(f, value.GetValue(), want)
	case errors.As(err, &unknown):
		var names []string
		flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := spelling.Nearest(unknown.GetSpecifiedName(), names); near != "" && unknown.GetSpecifiedShortnames() == "" {
			return fmt.Errorf("%w; did you mean --%s?", err, near)
		}
	}
	return err
}

// misuse is a mistake on the command line. The help is named and not printed: it
// would push the message off the screen.
func misuse(cmd *cobra.Command, err error) error {
	return &inspect.Error{
		Kind: inspect.Usage, Code: "E_USAGE", What: err.Error(), Hint: "see: " + cmd.CommandPath() + " --help", Err: err,
	}
}

// paragraph is a text of lines as the help has them.
func paragraph(text string) string { return strings.Join(out.Wrap(text, helpWidth), "\n") }

// helpWidth fits a terminal of 80 columns.
const helpWidth = 80

// enum completes a flag from a fixed list.
func enum(cmd *cobra.Command, flag string, values []string) {
	must(cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)))
}

// oneOf refuses a flag value that is not on its list.
func oneOf(cmd *cobra.Command, flag string, values []string) error {
	f := cmd.Flag(flag)
	if slices.Contains(values, f.Value.String()) {
		return nil
	}
	return misuse(cmd, wrongValue(f, f.Value.String(), "one of "+strings.Join(values, ", ")))
}

// positive refuses flags that count or measure something there must be of.
func positive(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		f := cmd.Flag(name)
		text := f.Value.String()
		if d, err := time.ParseDuration(text); err == nil && d > 0 {
			continue
		}
		var n float64
		if _, err := fmt.Sscan(text, &n); err == nil && n > 0 && f.Value.Type() != "duration" {
			continue
		}
		return misuse(cmd, wrongValue(f, text, expected[f.Value.Type()]+" above 0"))
	}
	return nil
}

// notNegative refuses numbers and durations below 0 of flags whose 0 means something.
func notNegative(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if f := cmd.Flag(name); strings.HasPrefix(f.Value.String(), "-") {
			return misuse(cmd, wrongValue(f, f.Value.String(), "0 or more"))
		}
	}
	return nil
}
