package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/explain"
)

type explainOptions struct {
	explain.Command
	addr string
	inspect.Timeouts
}

// newExplain builds the command; run replaces what it does, for tests.
func newExplain(a *app, run func(context.Context, *explainOptions) error) *cobra.Command {
	o := &explainOptions{}
	if run == nil {
		run = func(ctx context.Context, o *explainOptions) error {
			client, err := inspect.NewClient(o.addr, o.Timeouts)
			if err != nil {
				return err
			}
			return o.Run(ctx, client, a.streams)
		}
	}
	cmd := &cobra.Command{
		Use:   "explain [-]",
		Short: "Show why a request goes where it goes",
		Long: `Show the scorecard of a request: which pods could take it, what each has cached,
every term of every score, and what decided.

It asks a running serve, which answers with the same function that answers Envoy;
asking changes nothing. A prompt leaves no trace there.`,
		Example: `  # where would this go?
  eppctl explain --model llama --prompt "Once upon a time"

  # a chat request as the client sends it; - reads stdin
  eppctl explain -f chat.json

  # token ids, among two pods only
  eppctl explain --tokens 1,2,3,4 --subset 10.0.0.7:8000,10.0.0.8:8000

  # a pick that was made, as JSON
  eppctl explain --request-id 7d0e-19ab -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && args[0] != "-" {
				return misuse(cmd, fmt.Errorf("eppctl explain: found %q; expected no argument but -", args[0]))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf(cmd, "output", explain.Formats()); err != nil {
				return err
			}
			if len(args) == 1 {
				if o.File != "" {
					return misuse(cmd, errors.New("found -f and -; expected one of them"))
				}
				o.File = "-"
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return run(ctx, o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.File, "file", "f", "", "request body, `FILE` or - for stdin")
	f.StringVar(&o.Prompt, "prompt", "", "`TEXT` of a completion")
	f.StringVar(&o.Tokens, "tokens", "", "token `IDS` of a completion, comma-separated")
	f.StringVar(&o.Model, "model", "", "model `NAME`; replaces that of the body")
	f.StringVar(&o.Path, "path", "", "request `PATH` (default: what the body looks like)")
	f.StringArrayVar(&o.Headers, "header", nil, "request header `KEY=VALUE`, repeatable")
	f.StringVar(&o.Subset, "subset", "", "only these `ENDPOINTS`, as the gateway would hint")
	f.StringVar(&o.RequestID, "request-id", "", "explain the pick made for this `ID`: x-request-id, or x-eppctl-pick-id")
	f.StringVar(&o.addr, "addr", inspect.DefaultAddr, "admin `ADDR` of serve: HOST:PORT or unix:/PATH")
	f.DurationVar(&o.Total, "timeout", 5*time.Second, "of the whole call")
	f.DurationVar(&o.Dial, "dial-timeout", 2*time.Second, "of the connection")
	f.StringVarP(&o.Format, "output", "o", "table", "table, wide, json, yaml")
	f.BoolVar(&o.All, "all", false, "fold nothing")
	enum(cmd, "output", explain.Formats())
	enum(cmd, "path", []string{"/v1/completions", "/v1/chat/completions"})
	must(cmd.MarkFlagFilename("file", "json"))
	must(cmd.RegisterFlagCompletionFunc("model", a.completeNames("model", &o.addr)))
	must(cmd.RegisterFlagCompletionFunc("subset", a.completeAddresses(&o.addr)))
	must(cmd.RegisterFlagCompletionFunc("request-id", a.completePicks(&o.addr)))
	for _, flag := range []string{"prompt", "tokens", "header", "addr"} {
		must(cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions))
	}
	return cmd
}
