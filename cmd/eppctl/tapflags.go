package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"
)

// need is a flag that says something only beside another, or beside none of some.
type need struct {
	flags []string
	met   bool
	of    string // what is missing, or in the way
}

// needs refuses flags that were given and would be passed over without a word.
// Variables are no mistake: they are meant for many calls.
func needs(cmd *cobra.Command, list []need) error {
	for _, n := range list {
		for _, name := range n.flags {
			if f := cmd.Flag(name); !n.met && given(cmd, name) {
				return misuse(cmd, errors.New("--"+f.Name+" "+n.of))
			}
		}
	}
	return nil
}

// given reports that a flag stands on the command line.
func given(cmd *cobra.Command, name string) bool {
	f := cmd.Flag(name)
	return f.Changed && len(f.Annotations[envNote]) == 0
}

// needs lists what tap's flags need of each other.
func (o *tapOptions) needs(cmd *cobra.Command) error {
	if given(cmd, "for") && given(cmd, "duration") {
		return misuse(cmd, errors.New("found --for and --duration, which are the same; expected one of them"))
	}
	if o.not {
		return misuse(cmd, errors.New("--not needs a filter behind it, such as --not --tier cpu"))
	}
	fromServe, engines := o.from == "serve", len(o.connect)+len(o.listen) > 0
	live := !fromServe && len(o.read) == 0
	shown := !o.Quiet && !o.Stats && o.Write.Path != "-" && !o.check.on
	table := slices.Contains([]string{"table", "wide"}, o.Format)
	return needs(cmd, []need{
		{[]string{"strict", "speed"}, len(o.read) > 0, "needs --read"},
		{[]string{"to"}, len(o.read) > 0, "needs --read"},
		{[]string{"end"}, o.replay.on || len(o.read) > 0, "needs --replay or --read"},
		{[]string{"with-metrics"}, o.Write.Path != "" && live && !engines, "needs --write, and pods of a configuration: endpoints have no metrics page, and serve and recordings have theirs"},
		{[]string{"write-filtered"}, o.Write.Path != "", "needs --write"},
		{[]string{"rotate-size", "rotate-time", "keep"}, o.Write.Path != "" && o.Write.Path != "-", "needs --write FILE"},
		{[]string{"addr", "dial-timeout"}, fromServe, "needs --from serve"},
		{[]string{"replay"}, live, "asks engines: it goes with neither --read nor --from serve"},
		{[]string{"config"}, !engines, "goes with neither --connect nor --listen: no configuration is read then"},
		{[]string{"config"}, live || o.check.on, "goes with --read and --from serve only for --check"},
		{[]string{"fail-on", "timeout"}, o.check.on, "needs --check"},
		{[]string{"sample", "rate", "raw", "time"}, shown, "is about events that are shown: -q, --stats, --check and --write - show none"},
		{[]string{"time"}, table, "is about tables: JSON and YAML have both times"},
		{[]string{"show-tokens"}, !table, "needs -o jsonl, json or yaml"},
	})
}
