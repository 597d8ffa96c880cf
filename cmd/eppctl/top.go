package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/top"
	"github.com/eppctl/eppctl/internal/serve"
)

type topOptions struct {
	top.Command
	addr   string
	config string
	pods   []string
	read   []string
	direct bool // engines are followed, and no serve is asked
	inspect.Timeouts
}

// newTop builds the command; run replaces what it does, for tests.
func newTop(a *app, run func(context.Context, *topOptions) error) *cobra.Command {
	o := &topOptions{}
	if run == nil {
		run = func(ctx context.Context, o *topOptions) error { return o.run(ctx, a) }
	}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the fleet: load, hits, caches, breakers, event streams",
		Long: `Show the fleet as a running serve sees it, a frame a second: requests and where
their prefixes were cached, and of each pod its queue, KV use, hits, blocks by
tier, share of the picks, breaker, event stream, and how old all of this is.

Enter looks into a pod or explains a pick. p pauses, and < steps back through the
last ten minutes. ? lists the keys. top only looks: no key changes anything.

--config follows the engines of a configuration instead, when no serve runs. What
a picker counts (requests, hits) is not known then.

--read shows what was: frames that top has saved (key w, -o json, -o jsonl), or a
recording of tap, of which it makes a frame every --interval. < and > step.`,
		Example: `  # watch a serve on this machine
  eppctl top

  # another one, through a tunnel
  eppctl top --addr 127.0.0.1:19004

  # one frame as text; ten frames for a log; frames for a script
  eppctl top --once
  eppctl top --batch -n 10 --interval 5s
  eppctl top -o jsonl | jq -c '.pods[] | [.name, .state, .load.in_flight]'

  # what was it like? Saved frames, or what tap has recorded
  eppctl top --read eppctl-top-20261129T114307-16.json
  eppctl top --read a.eptap -i 5s

  # no serve is running: the engines themselves
  eppctl top --config eppctl.yaml --pod 'vllm-a-*'`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf(cmd, "output", top.Formats()); err != nil {
				return err
			}
			past := len(o.read) > 0
			o.direct = !past && (given(cmd, "config") || given(cmd, "pod"))
			several := o.Batch || o.Format == "jsonl"
			if err := needs(cmd, []need{
				{[]string{"count"}, several, "needs --batch or -o jsonl"},
				{[]string{"once"}, !several, "goes with neither --batch nor -o jsonl: --batch -n 1 is one frame"},
				{[]string{"addr", "dial-timeout", "pod"}, !past, "does not go with --read: what is in the file is shown"},
				{[]string{"addr", "dial-timeout"}, !o.direct, "goes with neither --config nor --pod: no serve is asked then"},
			}); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.addr, "addr", inspect.DefaultAddr, "admin `ADDR` of serve: HOST:PORT or unix:/PATH")
	f.DurationVar(&o.Dial, "dial-timeout", 2*time.Second, "of the connection")
	f.DurationVarP(&o.Interval, "interval", "i", time.Second, "between frames, 100ms to 1m")
	f.BoolVar(&o.Once, "once", false, "print one frame as text and end")
	f.BoolVar(&o.Batch, "batch", false, "print frames as text")
	f.IntVarP(&o.Count, "count", "n", 0, "end after `N` frames of --batch or -o jsonl (0: go on)")
	f.StringVarP(&o.Format, "output", "o", "table", "table, json (with --once), jsonl (a frame per line)")
	f.BoolVar(&o.ASCII, "ascii", false, "no block characters (the default where the locale is not UTF-8)")
	configFlag(cmd, &o.config)
	f.StringArrayVar(&o.read, "read", nil, "show saved frames, or a recording of tap: `FILE`, - for stdin, or a pattern such as 'a*.eptap'; repeatable, one behind the other")
	must(cmd.MarkFlagFilename("read", "eptap", "json", "jsonl"))
	f.StringArrayVar(&o.pods, "pod", nil, "of the configuration's pods those by `PATTERN`, repeatable")
	enum(cmd, "output", top.Formats())
	must(cmd.RegisterFlagCompletionFunc("pod", a.completePods(&o.config)))
	for _, flag := range []string{"addr", "dial-timeout", "interval", "count"} {
		must(cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions))
	}
	return cmd
}

func (o *topOptions) run(ctx context.Context, a *app) error {
	ends := hangable // the screen heeds the others itself
	if o.Once || o.Batch || o.Format == "jsonl" {
		ends = a.interruptible
	}
	ctx, stop := ends(ctx)
	defer stop()
	if len(o.read) > 0 {
		return o.show(ctx, a.streams)
	}
	if o.direct {
		return o.follow(ctx, a)
	}
	client, err := inspect.NewClient(o.addr, o.Timeouts)
	if err != nil {
		return err
	}
	o.Addr = o.addr
	return o.Run(ctx, client, a.streams)
}

// follow watches the engines of a configuration.
func (o *topOptions) follow(ctx context.Context, a *app) error {
	c, err := a.loadConfig(o.config)
	if err != nil {
		return err
	}
	pods := slices.DeleteFunc(slices.Clone(c.Pods), func(s pod.Spec) bool {
		return len(o.pods) > 0 && !slices.ContainsFunc(o.pods, func(p string) bool { return recording.Glob(p, s.Name) })
	})
	if len(pods) == 0 {
		return &inspect.Error{
			Kind: inspect.Usage, Code: "E_USAGE", What: fmt.Sprintf("--pod: found %q; expected a name or pattern of a configured pod", o.pods),
			Hint: "try: --pod '*'",
		}
	}
	fleet := serve.Observe(c, pods, slog.New(slog.DiscardHandler)) // a log would be written over the screen
	defer fleet.Close()
	o.Addr = "engines"
	return o.Run(ctx, inspect.NewLocalClient(o.Addr, fleet.Handler()), a.streams)
}
