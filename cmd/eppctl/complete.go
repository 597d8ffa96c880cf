package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/serve"
)

// A completion must neither hang the shell nor print into it: it has 300 ms, and
// its errors are nobody's business.
const completionTime = 300 * time.Millisecond

type completer = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// completeNames offers names from a running serve, with their state, or from the
// configuration when none answers.
func (a *app) completeNames(kind string, addr *string) completer {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		_ = bindEnv(cmd.Flags(), a.getenv) // a bad variable shows when the command runs
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		if c, err := inspect.NewClient(*addr, inspect.Timeouts{Dial: completionTime, Total: completionTime}); err == nil {
			if names, err := c.Names(ctx, kind); err == nil {
				var list []string
				for _, n := range names {
					list = append(list, cobra.CompletionWithDesc(n.Name, n.State))
				}
				return list, cobra.ShellCompDirectiveNoFileComp
			}
		}
		return a.configured("", func(c *serve.Config) (list []string) {
			for _, m := range c.Models {
				list = append(append(append(list, m.Name), m.Aliases...), m.Adapters...)
			}
			return list
		})
	}
}

// completePods offers the pods of the file.
func (a *app) completePods(config *string) completer {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		_ = bindEnv(cmd.Flags(), a.getenv)
		return a.configured(*config, func(c *serve.Config) (list []string) {
			for _, p := range c.Pods {
				list = append(list, cobra.CompletionWithDesc(p.Name, p.Address))
			}
			return list
		})
	}
}

// completeAddresses offers the pods' addresses.
func (a *app) completeAddresses(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return a.configured("", func(c *serve.Config) (list []string) {
		for _, p := range c.Pods {
			list = append(list, cobra.CompletionWithDesc(p.Address, p.Name))
		}
		return list
	})
}

func (a *app) configured(path string, list func(*serve.Config) []string) ([]string, cobra.ShellCompDirective) {
	c, err := a.loadConfig(path)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return list(c), cobra.ShellCompDirectiveNoFileComp
}
