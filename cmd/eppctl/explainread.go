package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/inspect/tap"
	"github.com/eppctl/eppctl/internal/serve"
)

// explainRead is explain from a recording: its flags and what they mean.
type explainRead struct {
	files  []string
	at     string
	config string
	moment tap.Moment
}

func (o *explainRead) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&o.files, "read", nil, "explain from a recording, `FILE`, - for stdin, or a pattern such as 'a*.eptap'; repeatable, played one behind the other")
	f.StringVar(&o.at, "at", "", "with --read, the `TIME` to decide at: 2026-11-29T11:42:07Z, 11:42, +5m after the begin, -5m before the end (default: the end)")
	f.StringVar(&o.config, "config", "", "with --read, the `FILE` that models, weights and tokenizers are taken from (default: defaults, and pods as recorded)")
	must(cmd.MarkFlagFilename("read", "eptap", "json"))
	must(cmd.MarkFlagFilename("config", "yaml", "yml"))
	must(cmd.RegisterFlagCompletionFunc("at", cobra.NoFileCompletions))
}

// check refuses what does not go together.
func (o *explainRead) check(cmd *cobra.Command) (err error) {
	if len(o.files) == 0 {
		if o.at != "" {
			return misuse(cmd, errors.New("found --at without --read; a running serve answers as of now"))
		}
		return nil
	}
	if cmd.Flags().Changed("request-id") {
		return misuse(cmd, errors.New("found --request-id with --read; a recording holds what engines said, and no picks"))
	}
	if o.at == "" {
		return nil
	}
	if o.moment, err = tap.ParseMoment(o.at); err != nil {
		return misuse(cmd, wrongValue(cmd.Flag("at"), o.at, "a time such as 2026-11-29T11:42:07Z, 11:42, +5m after the begin, or -5m before the end"))
	}
	if o.moment.Relative() && slices.Contains(o.files, "-") {
		return misuse(cmd, wrongValue(cmd.Flag("at"), o.at, "a whole time such as 2026-11-29T11:42:07Z: stdin can be read once"))
	}
	return nil
}

// play reads the recording and returns the admin API over it; close ends it.
func (o *explainRead) play(ctx context.Context, s *out.Streams) (client *inspect.Client, end func(), err error) {
	c, err := serve.LoadConfig(o.config)
	if err != nil {
		return nil, nil, err
	}
	paths, err := tap.Expand(o.files)
	if err != nil {
		return nil, nil, err
	}
	warn := func(text string) { fmt.Fprintf(s.Err, "warn: %s\n", out.Clean(text)) }
	file := &tap.File{Paths: paths, Stdin: s.In, To: o.moment, Warn: warn}
	fleet := serve.NewRecorded(c)
	if err := file.Run(ctx, fleet.Take); err != nil {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	at, err := decidedAt(fleet, file)
	if err != nil {
		return nil, nil, err
	}
	for _, text := range fleet.Flaws() {
		warn(text)
	}
	return inspect.NewLocalClient(file.String(), fleet.Handler(at)), fleet.Close, nil
}

// decidedAt is the time asked for, which has to lie in the recording: before it
// nothing is known, and behind it no age means anything.
func decidedAt(fleet *serve.Recorded, file *tap.File) (time.Time, error) {
	_, last := fleet.Span()
	begin, end := file.Extent()
	at := file.Until()
	switch {
	case !at.IsZero() && !end.IsZero() && (at.Before(begin) || at.After(end)):
		return at, &inspect.Error{
			Kind: inspect.Usage, Code: "E_USAGE", What: fmt.Sprintf("--at: found %s; expected a time in the recording", at.Format(time.RFC3339Nano)),
			Why: fmt.Sprintf("it goes from %s to %s", begin.Format(time.RFC3339Nano), end.Format(time.RFC3339Nano)),
		}
	case last.IsZero() && !at.IsZero():
		return at, &inspect.Error{
			Kind: inspect.Failed, Code: "E_RECORDING", What: fmt.Sprintf("%s holds nothing to decide from up to %s", file, at.Format(time.RFC3339Nano)),
			Why:  "no record up to then is of an engine",
			Hint: "ask for a later time",
		}
	case last.IsZero():
		return at, &inspect.Error{
			Kind: inspect.Failed, Code: "E_RECORDING", What: file.String() + " holds nothing to decide from",
			Why:  "no record in it is of an engine",
			Hint: "tap --write FILE --with-metrics, or tap --from serve --write FILE, makes one",
		}
	case at.IsZero():
		return last, nil
	}
	return at, nil
}
