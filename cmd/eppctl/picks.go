package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/picks"
)

type picksOptions struct {
	picks.Command
	addr string
	inspect.Timeouts
}

// maxLast is far above what a serve keeps unless told otherwise.
const maxLast = 1 << 20

// newPicks builds the command; run replaces what it does, for tests.
func newPicks(a *app, run func(context.Context, *picksOptions) error) *cobra.Command {
	o := &picksOptions{}
	if run == nil {
		run = func(ctx context.Context, o *picksOptions) error { return o.run(ctx, a) }
	}
	cmd := &cobra.Command{
		Use:   "picks",
		Short: "Follow decisions: which request went to which pod",
		Long: `Print the latest decisions of a running serve, a line each, and with -f those that
follow: the pod, how much of the prompt was cached there, the score in seconds and how
far it was ahead, and why nothing was matched. No line holds anything of a prompt but
its length.

serve keeps limits.recent_cards decisions and waits for nobody: a reader who comes too
late is told how many it missed. Ctrl-C ends it, and an account follows on stderr.`,
		Example: `  # the last ones, and what comes
  eppctl picks -f

  # of one pod, for a script
  eppctl picks -f --pod vllm-0 -o jsonl | jq -c '[.at, .request_id, .cached_tokens, .tokens]'

  # why did one of them go there?
  eppctl explain --request-id 7d0e-19ab`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf(cmd, "output", picks.Formats()); err != nil {
				return err
			}
			if o.Last < 0 || o.Last > maxLast {
				return misuse(cmd, wrongValue(cmd.Flag("last"), cmd.Flag("last").Value.String(), fmt.Sprintf("0 to %d", maxLast)))
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.addr, "addr", inspect.DefaultAddr, "admin `ADDR` of serve: HOST:PORT or unix:/PATH")
	f.DurationVar(&o.Dial, "dial-timeout", 2*time.Second, "of the connection")
	f.BoolVarP(&o.Follow, "follow", "f", false, "go on with what is decided from now on")
	f.IntVarP(&o.Last, "last", "n", 10, "begin with the last `N`")
	f.StringVar(&o.Pod, "pod", "", "only what went to the pod of this `NAME`")
	f.StringVarP(&o.Format, "output", "o", "table", "table, jsonl (an object per line)")
	enum(cmd, "output", picks.Formats())
	must(cmd.RegisterFlagCompletionFunc("pod", a.completeNames("pod", &o.addr)))
	for _, flag := range []string{"addr", "dial-timeout", "last"} {
		must(cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions))
	}
	return cmd
}

func (o *picksOptions) run(ctx context.Context, a *app) error {
	ctx, stop := a.interruptible(ctx)
	defer stop()
	client, err := inspect.NewClient(o.addr, o.Timeouts)
	if err != nil {
		return err
	}
	return o.Run(ctx, client, a.streams)
}
