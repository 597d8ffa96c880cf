package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/explain"
	"github.com/eppctl/eppctl/internal/serve"
)

// The flags of explain that suppose something.

func (o *explainOptions) supposeFlags(cmd *cobra.Command, a *app) {
	f := cmd.Flags()
	f.StringArrayVar(&o.Suppose.Inputs, "set", nil, "what if `POD.FIELD=VALUE`: "+strings.Join(pick.InputNames(), ", ")+"; repeatable")
	f.StringArrayVar(&o.Suppose.Weights, "weight", nil, "what if `TERM=VALUE`: a term's weight, or any key of weights, such as kv=2 or breaker.depth=16; repeatable")
	f.StringArrayVar(&o.Suppose.Without, "without", nil, "what if `POD` were not there; repeatable")
	must(cmd.RegisterFlagCompletionFunc("set", a.completeInputs(&o.addr)))
	must(cmd.RegisterFlagCompletionFunc("weight", completeWeights))
	must(cmd.RegisterFlagCompletionFunc("without", a.completeNames("pod", &o.addr)))
}

// checkSuppose reads what is supposed before anybody is asked: a slip needs no server.
func (o *explainOptions) checkSuppose(cmd *cobra.Command) error {
	for _, text := range o.Suppose.Inputs {
		if _, err := pick.ParseInput(text); err != nil {
			return misuse(cmd, fmt.Errorf("--set: %w", err))
		}
	}
	for _, text := range o.Suppose.Weights {
		if _, err := pick.ParseWeight(text); err != nil {
			return misuse(cmd, fmt.Errorf("--weight: %w", err))
		}
	}
	return nil
}

// typed are the flags that say who was asked, and what beside the prompt, for the
// commands that are suggested: without --subset the answer would be another one.
func (o *explainOptions) typed(cmd *cobra.Command) (list []string) {
	for _, name := range []string{"model", "path", "subset", "addr", "at", "config"} {
		if given(cmd, name) {
			list = append(list, explain.Flag(name, cmd.Flag(name).Value.String()))
		}
	}
	for _, h := range o.Headers {
		list = append(list, explain.Flag("header", h))
	}
	for _, file := range o.read.files {
		list = append(list, explain.Flag("read", file))
	}
	return list
}

// tryConfig is the flag by which a suggested command finds the configuration that this
// one was told of; where none is found, the flag says what is to be filled in.
func (a *app) tryConfig(cmd *cobra.Command) string {
	if given(cmd, "config") {
		return explain.Flag("config", cmd.Flag("config").Value.String())
	}
	if _, err := a.findConfig(""); err != nil {
		return configUnknown
	}
	return ""
}

// configUnknown is the flag with its value to be filled in.
const configUnknown = "--config FILE"

// configOf finds the flag by the file that a running serve reads.
func configOf(client *inspect.Client) func(context.Context) string {
	return func(ctx context.Context) string {
		if path, err := client.ConfigFile(ctx); err == nil && path != "" {
			return explain.Flag("config", path)
		}
		return configUnknown
	}
}

// inputsHelp lists what can be supposed of a pod.
func inputsHelp() string {
	var b strings.Builder
	for _, name := range pick.InputNames() {
		fmt.Fprintf(&b, "  %-10s %s\n", name, pick.InputAbout(name))
	}
	return strings.TrimRight(b.String(), "\n")
}

// weightsHelp lists what --weight takes.
func weightsHelp() string {
	return paragraph("--weight takes the name of a term or a key of weights, of which docs/config.md tells: " + strings.Join(pick.WeightNames(), ", ") + ".")
}

// completeInputs offers pods, and behind a pod's name its inputs.
func (a *app) completeInputs(addr *string) completer {
	return func(cmd *cobra.Command, _ []string, typed string) (list []string, _ cobra.ShellCompDirective) {
		pods := a.podNames(cmd, *addr)
		for _, p := range pods {
			if !strings.HasPrefix(typed, p+".") {
				list = append(list, p+".")
				continue
			}
			for _, name := range pick.InputNames() {
				list = append(list, cobra.CompletionWithDesc(p+"."+name+"=", pick.InputAbout(name)))
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// podNames are those of a running serve, or of the configuration when none answers.
func (a *app) podNames(cmd *cobra.Command, addr string) (list []string) {
	if a.ask(cmd, addr, func(ctx context.Context, c *inspect.Client) error {
		names, err := c.Names(ctx, "pod")
		for _, n := range names {
			list = append(list, n.Name)
		}
		return err
	}) {
		return list
	}
	list, _ = a.configured("", func(c *serve.Config) (list []string) {
		for _, p := range c.Pods {
			list = append(list, p.Name)
		}
		return list
	})
	return list
}

func completeWeights(*cobra.Command, []string, string) (list []string, _ cobra.ShellCompDirective) {
	for _, name := range pick.WeightNames() {
		list = append(list, name+"=")
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// checkAgainst refuses what two replicas cannot be asked about at once.
func (o *explainOptions) checkAgainst(cmd *cobra.Command) error {
	if o.against == "" {
		return nil
	}
	o.against = strings.TrimSuffix(strings.TrimPrefix(o.against, "http://"), "/")
	return needs(cmd, []need{
		{[]string{"read"}, false, "and --against exclude each other: a recording is of one serve, and of another time"},
		{[]string{"request-id"}, false, "and --against exclude each other: a pick is known to the serve that made it"},
		{[]string{"set", "weight", "without", "show-tokens", "compare-engine", "save"}, false, "and --against exclude each other"},
	})
}

// checkSaved refuses what cannot be had of a saved answer, or of what differs from one.
func (o *explainOptions) checkSaved(cmd *cobra.Command) error {
	saved := slices.ContainsFunc(o.read.files, explain.IsSaved)
	return needs(cmd, []need{
		{[]string{"file", "request", "prompt", "token-ids", "model", "path", "header", "subset", "request-id", "at", "config", "set", "weight", "without", "compare-engine", "against", "save", "diff"}, !saved, "cannot be used on a saved answer, which shows what was decided then"},
		{[]string{"against", "set", "weight", "without", "show-tokens", "compare-engine"}, o.diff == "", "and --diff exclude each other"},
	})
}
