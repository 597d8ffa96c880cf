package main

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/serve"
)

// A completion must neither hang the shell nor print into it: it has 300 ms, and
// its errors are nobody's business.
const completionTime = 300 * time.Millisecond

type completer = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// ask gives a running serve the time of a completion.
func (a *app) ask(cmd *cobra.Command, addr string, call func(context.Context, *inspect.Client) error) bool {
	_ = bindEnv(cmd.Flags(), a.getenv) // a bad variable shows when the command runs
	if f := cmd.Flag("addr"); f != nil {
		addr = f.Value.String()
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	c, err := inspect.NewClient(addr, inspect.Timeouts{Dial: completionTime, Total: completionTime})
	return err == nil && call(ctx, c) == nil
}

// completeNames offers names from a running serve, with their state, or from the
// configuration when none answers.
func (a *app) completeNames(kind string, addr *string) completer {
	return func(cmd *cobra.Command, _ []string, _ string) (list []string, _ cobra.ShellCompDirective) {
		if a.ask(cmd, *addr, func(ctx context.Context, c *inspect.Client) error {
			names, err := c.Names(ctx, kind)
			for _, n := range names {
				list = append(list, cobra.CompletionWithDesc(n.Name, n.State))
			}
			return err
		}) {
			return list, cobra.ShellCompDirectiveNoFileComp
		}
		return a.configured("", func(c *serve.Config) []string { return namesOf(c, kind) })
	}
}

// namesOf lists what a configuration calls pods, or models.
func namesOf(c *serve.Config, kind string) (list []string) {
	if kind == "pod" {
		for _, p := range c.Pods {
			list = append(list, cobra.CompletionWithDesc(p.Name, p.Address))
		}
		return list
	}
	for _, m := range c.Models {
		list = append(append(append(list, m.Name), m.Aliases...), m.Adapters...)
	}
	return list
}

// offeredPicks is how many recent picks a completion lists: one screen.
const offeredPicks = 20

// completePicks offers the request ids of recent picks, newest first.
func (a *app) completePicks(addr *string) completer {
	return func(cmd *cobra.Command, _ []string, _ string) (list []string, _ cobra.ShellCompDirective) {
		a.ask(cmd, *addr, func(ctx context.Context, c *inspect.Client) error {
			picks, err := c.Picks(ctx, offeredPicks)
			for _, p := range picks {
				if p.RequestID == "" || strings.ContainsFunc(p.RequestID, unicode.IsSpace) {
					continue // nothing a shell could pass on
				}
				what := p.Model
				if p.Pod != nil {
					what += " to " + *p.Pod
				}
				list = append(list, cobra.CompletionWithDesc(p.RequestID, strings.TrimSpace(what)))
			}
			return err
		})
		return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completePods offers the pods of the file.
func (a *app) completePods(config *string) completer {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		_ = bindEnv(cmd.Flags(), a.getenv)
		return a.configured(*config, func(c *serve.Config) []string { return namesOf(c, "pod") })
	}
}

// completeTapped offers the pods of what tap listens to: of a running serve with
// --from serve, else of the file.
func (a *app) completeTapped(o *tapOptions) completer {
	file, live := a.completePods(&o.config), a.completeNames("pod", &o.addr)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if o.from == "serve" {
			return live(cmd, args, typed)
		}
		return file(cmd, args, typed)
	}
}

// completeAddresses offers the pods' addresses, of a running serve or of the file,
// behind those that are typed already.
func (a *app) completeAddresses(addr *string) completer {
	return func(cmd *cobra.Command, _ []string, typed string) (list []string, _ cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		if a.ask(cmd, *addr, func(ctx context.Context, c *inspect.Client) error {
			pods, err := c.Pods(ctx)
			for _, p := range pods {
				if p.Addr != "" {
					list = append(list, cobra.CompletionWithDesc(before+p.Addr, strings.TrimSpace(p.Name+" "+p.State)))
				}
			}
			return err
		}) {
			return list, cobra.ShellCompDirectiveNoFileComp
		}
		return a.configured("", func(c *serve.Config) (list []string) {
			for _, p := range c.Pods {
				list = append(list, cobra.CompletionWithDesc(before+p.Address, p.Name))
			}
			return list
		})
	}
}

func everyCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, c := range cmd.Commands() {
		everyCommand(c, do)
	}
}

// noFileNames keeps the names of files from values that are none: a shell offers them
// where nothing else is.
func noFileNames(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if name, _ := pflag.UnquoteUsage(f); name == "FILE" || name == "DIR" || name == "BINARY" {
			return
		}
		if _, has := cmd.GetFlagCompletionFunc(f.Name); !has {
			must(cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions))
		}
	})
}

// plainUsage takes the quotes, which mark a value's name for the help, from what a shell
// shows beside a flag.
func plainUsage(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
}

func (a *app) configured(path string, list func(*serve.Config) []string) ([]string, cobra.ShellCompDirective) {
	c, err := a.loadConfig(path)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return list(c), cobra.ShellCompDirectiveNoFileComp
}
