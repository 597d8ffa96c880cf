package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/explain"
	"github.com/eppctl/eppctl/internal/inspect/out"
)

type explainOptions struct {
	explain.Command
	addr, against, diff string
	inspect.Timeouts
	read explainRead
}

func (o *explainOptions) ask(ctx context.Context, server explain.Asker, s *out.Streams) error {
	if o.diff != "" {
		return o.RunDiff(ctx, o.diff, server, s)
	}
	return o.Run(ctx, server, s)
}

// newExplain builds the command; run replaces what it does, for tests.
func newExplain(a *app, run func(context.Context, *explainOptions) error) *cobra.Command {
	o := &explainOptions{Timeouts: inspect.Timeouts{Flag: "--timeout"}}
	if run == nil {
		run = func(ctx context.Context, o *explainOptions) error {
			if len(o.read.files) == 1 && explain.IsSaved(o.read.files[0]) {
				return o.RunSaved(o.read.files[0], a.streams)
			}
			if len(o.read.files) > 0 {
				client, end, err := o.read.play(ctx, a.streams)
				if err != nil {
					return err
				}
				defer end()
				o.Past = true
				return o.ask(ctx, client, a.streams)
			}
			client, err := inspect.NewClient(o.addr, o.Timeouts)
			if err != nil {
				return err
			}
			if o.against != "" {
				other, err := inspect.NewClient(o.against, o.Timeouts)
				if err != nil {
					return inspect.OfFlag(err, "--against")
				}
				return o.RunAgainst(ctx, [2]string{o.addr, o.against}, [2]explain.Asker{client, other}, a.streams)
			}
			if o.Config == configUnknown {
				o.ConfigOf = configOf(client)
			}
			return o.ask(ctx, client, a.streams)
		}
	}
	cmd := &cobra.Command{
		Use:   "explain [-]",
		Short: "Show why a request goes where it goes",
		Long: `Show the scorecard of a request: which pods could take it, what each has cached,
every term of every score, and what decided.

It asks a running serve, which answers with the same function that answers Envoy;
asking changes nothing. A prompt leaves no trace there.

FLIP is the smallest change of one number that would give the request to another
pod, TRY the command to run next. --set, --weight and --without show what another
number would have done, beside the decision as it is: of a question, of a pick that
was made, and of a recording. With --set, FIELD is one of

` + inputsHelp() + `

` + weightsHelp() + `

--read asks a recording instead, as of any time in it: the fleet is played back
from the recorded events and metrics, and the same function decides. Requests
that serve had in flight are not recorded. Text is tokenized as
--config says, by the model's files or by engines that answer now; without it the
prompt must be token ids. Of an answer that --save or -o json wrote, --read shows
what was decided then.`,
		Example: `  # where would this go?
  eppctl explain --model llama --prompt "Once upon a time"

  # a chat request as the client sends it; - reads stdin
  eppctl explain -f chat.json

  # token ids, among two pods only
  eppctl explain --token-ids 1,2,3,4 --subset 10.0.0.7:8000,10.0.0.8:8000

  # where would it have gone at 11:42? (tap --from serve --write a.eptap records)
  eppctl explain --read a.eptap --at 11:42 --config eppctl.yaml -f chat.json

  # the token ids by which it is routed, and whether an engine makes the same
  eppctl explain -f chat.json --tokens --compare-engine http://10.0.0.7:8000

  # a pick that was made, as JSON
  eppctl explain --request-id 7d0e-19ab -o json

  # and what it would have been with a longer queue, another weight, a pod less
  eppctl explain --request-id 7d0e-19ab --set vllm-0.queue=12 --weight kv=2 --without vllm-3

  # keep the answer, look at it again, and say what has changed since
  eppctl explain -f chat.json --save before.json
  eppctl explain --read before.json -o wide
  eppctl explain -f chat.json --diff before.json

  # do two replicas decide alike? An admin API is on loopback only: a tunnel leads to
  # the other one, ssh -NL 9104:127.0.0.1:9004 HOST, or kubectl port-forward POD 9104:9004
  eppctl explain -f chat.json --against 127.0.0.1:9104`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := noIDs(cmd, args); err != nil {
				return err
			}
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
			if given(cmd, "file") && given(cmd, "request") {
				return misuse(cmd, errors.New("found --file and --request, which are the same; expected one of them"))
			}
			if len(args) == 1 {
				if o.File != "" {
					return misuse(cmd, errors.New("found -f and -; expected one of them"))
				}
				o.File = "-"
			}
			if o.File == "-" && slices.Contains(o.read.files, "-") {
				return misuse(cmd, errors.New("found - as the request and as the recording; expected one of them from stdin"))
			}
			if err := o.read.check(cmd); err != nil {
				return err
			}
			if err := o.checkSuppose(cmd); err != nil {
				return err
			}
			if err := o.checkAgainst(cmd); err != nil {
				return err
			}
			if err := o.checkSaved(cmd); err != nil {
				return err
			}
			o.Typed, o.Config = o.typed(cmd), a.tryConfig(cmd)
			ctx, stop := a.interruptible(cmd.Context())
			defer stop()
			return run(ctx, o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.File, "file", "f", "", "request body, `FILE` or - for stdin")
	f.StringVar(&o.File, "request", "", "the same `FILE` as --file names")
	f.StringVar(&o.Prompt, "prompt", "", "`TEXT` of a completion")
	f.StringVar(&o.Tokens, "token-ids", "", "token `IDS` of a completion, comma-separated; those of a prompt are printed by --tokens")
	f.StringVar(&o.Model, "model", "", "model `NAME`; replaces that of the body")
	f.StringVar(&o.Path, "path", "", "request `PATH` (default: what the body looks like)")
	f.StringArrayVar(&o.Headers, "header", nil, "request header `KEY=VALUE`, repeatable")
	f.StringVar(&o.Subset, "subset", "", "only these `ENDPOINTS`, as the gateway would hint")
	f.StringVar(&o.RequestID, "request-id", "", "explain the pick made for this `ID`: x-request-id, or x-eppctl-pick-id; --id is the same")
	f.StringVar(&o.addr, "addr", inspect.DefaultAddr, "admin `ADDR` of serve: HOST:PORT or unix:/PATH")
	f.StringVar(&o.against, "against", "", "ask the serve at this admin `ADDR` as well, and show only what differs; exit code 3 when they pick different pods")
	f.StringVar(&o.Save, "save", "", "write the answer to `FILE` as JSON too, for --read and --diff")
	f.StringVar(&o.diff, "diff", "", "show only what is no longer as in `FILE`, a saved answer; exit code 3 when another pod is picked")
	f.DurationVar(&o.Total, "timeout", 5*time.Second, "of the whole call")
	f.DurationVar(&o.Dial, "dial-timeout", 2*time.Second, "of the connection")
	f.StringVarP(&o.Format, "output", "o", "table", "table, wide, json, yaml")
	f.BoolVar(&o.All, "all", false, "fold nothing")
	f.BoolVar(&o.ShowTokens, showTokens, false, "print the prompt's token ids, block borders, and what they were made with; --tokens is the same")
	f.StringVar(&o.Engine, "compare-engine", "", "compare the token ids with those of the engine at `URL`, which is sent the prompt; exit code 3 when they differ")
	alsoCalled(f, map[string]string{"id": "request-id", "tokens": showTokens})
	o.read.flags(cmd)
	o.supposeFlags(cmd, a)
	enum(cmd, "output", explain.Formats())
	enum(cmd, "path", []string{"/v1/completions", "/v1/chat/completions"})
	must(cmd.MarkFlagFilename("file", "json"))
	must(cmd.MarkFlagFilename("request", "json"))
	must(cmd.MarkFlagFilename("diff", "json"))
	must(cmd.MarkFlagFilename("save", "json"))
	must(cmd.RegisterFlagCompletionFunc("model", a.completeNames("model", &o.addr)))
	must(cmd.RegisterFlagCompletionFunc("subset", a.completeAddresses(&o.addr)))
	must(cmd.RegisterFlagCompletionFunc("request-id", a.completePicks(&o.addr)))
	for _, flag := range []string{"prompt", "token-ids", "header", "addr", "against", "compare-engine"} {
		must(cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions))
	}
	return cmd
}
