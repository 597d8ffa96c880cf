package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/inspect/tap"
	"github.com/eppctl/eppctl/internal/serve"
)

type tapOptions struct {
	tap.Command
	check    tapCheck
	config   string
	connect  []string
	listen   []string
	from, to string // "serve", or times
	addr     string
	dial     time.Duration
	read     []string
	speed    string
	strict   bool
	replay   replayFlag
	metrics  bool
	sample   string
	clock    string
	rotate   serve.Bytes
	patterns []string // of --pod that are not negated
	not      bool     // the next filter is negated
}

// newTap builds the command; run replaces what it does, for tests.
func newTap(a *app, run func(context.Context, *tapOptions) error) *cobra.Command {
	o := &tapOptions{}
	if run == nil {
		run = func(ctx context.Context, o *tapOptions) error {
			if o.check.on {
				return o.runCheck(ctx, a.streams)
			}
			return o.Run(ctx, a.streams)
		}
	}
	cmd := &cobra.Command{
		Use:   "tap",
		Short: "Show what engines publish about their KV caches",
		Long: `Show every KV event as it comes: what each engine stores and removes, what got
lost on the way, and what could not be read. One line per event, an account at the
end on stderr.

The events are those of the configured pods, of endpoints (--connect, --listen), of
a running serve as it received them (--from serve), or of a recording (--read).
tap only listens: it asks no replay port unless --replay says so.

--check compares the streams, and what the engines say of themselves, with the
configuration and prints every mismatch that would make routing blind, with its
reason code. It sends no prompt but one word to /tokenize.

` + paragraph("--expect holds these numbers of the account against others: "+strings.Join(tap.Countables(), ", ")+".") + `

--write records every message as it came, before any filter, for tap --read.
Recordings and --raw contain the token ids of prompts; recordings are created for
their user alone (mode 0600).

Rows in capitals are tap's own and pass every filter: UP, DOWN, GAP, REPLAY,
RESTART, PARTIAL, BADFRAME, UNKNOWN, DROPPED.

SIGUSR1 prints the account and goes on, SIGUSR2 flushes the recording.`,
		Example: `  # all pods of the configuration
  eppctl tap --config eppctl.yaml

  # one engine, no configuration
  eppctl tap --connect 10.0.0.7:5557

  # what serve has received: did the engine not send it, or did we lose it?
  eppctl tap --from serve --pod 'vllm-a-*' --not --tier cpu

  # who stores this prompt's prefix?
  eppctl tap --token-ids 1,2,3 --event stored

  # would the picker be blind? exit code 3 if so
  eppctl tap --check --config eppctl.yaml --for 30s --expect 'events>0'

  # record an hour in files of 100 MiB, and look later
  eppctl tap -q --write a.eptap --rotate-size 100MiB --keep 10 --duration 1h
  eppctl tap --read a.eptap --stats`,
		Args:              o.noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := a.interruptible(cmd.Context())
			defer stop()
			if err := o.complete(cmd, a); err != nil {
				return err
			}
			report, endReport := asked(syscall.SIGUSR1)
			defer endReport()
			flush, endFlush := asked(syscall.SIGUSR2)
			defer endFlush()
			o.Report, o.Flush = report, flush
			return run(ctx, o)
		},
	}
	o.flags(cmd, a)
	return cmd
}

// noArgs knows where most arguments come from.
func (o *tapOptions) noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && len(o.read) > 0 {
		return misuse(cmd, fmt.Errorf("found %q behind --read %s; expected one FILE, a pattern in quotes, or --read for each", args[0], o.read[0]))
	}
	if _, err := strconv.ParseUint(slices.Concat(args, []string{""})[0], 10, 64); err == nil && o.replay.on {
		return misuse(cmd, fmt.Errorf("found %q behind --replay; expected --replay=%s", args[0], args[0]))
	}
	if err := noIDs(cmd, args); err != nil {
		return err
	}
	return noArgs(cmd, args)
}

func (o *tapOptions) flags(cmd *cobra.Command, a *app) {
	f := cmd.Flags()
	configFlag(cmd, &o.config)
	f.StringArrayVar(&o.connect, "connect", nil, "engine's event `ADDR`, HOST:PORT or HOST:PORT,REPLAYPORT, repeatable; no configuration is read")
	f.StringArrayVar(&o.listen, "listen", nil, "local `ADDR` for engines that dial, HOST:PORT or :PORT, repeatable")
	f.StringVar(&o.from, "from", "", "`WHERE` from: serve; with --read, the time to begin at: 2026-11-29T11:42:07Z, 11:42, +5m after the begin, -5m before the end")
	f.StringVar(&o.to, "to", "", "with --read, the `TIME` to end at, likewise")
	f.StringVar(&o.addr, "addr", inspect.DefaultAddr, "admin `ADDR` of serve: HOST:PORT or unix:/PATH")
	f.DurationVar(&o.dial, "dial-timeout", 2*time.Second, "of the connection to serve")
	f.StringArrayVar(&o.read, "read", nil, "recording `FILE` to read, - for stdin, or a pattern such as 'a*.eptap'; repeatable, played one behind the other")
	f.StringVar(&o.speed, "speed", "max", "with --read, 1 as it was, 0.1 ten times slower, or max")
	f.BoolVar(&o.strict, "strict", false, "with --read, a recording that ends early is an error")
	f.Var(&o.replay, "replay", "ask replay ports for what is missing and for history, all of it or from batch `SEQ` on (--replay=SEQ)")
	f.Lookup("replay").NoOptDefVal = "true"
	f.BoolVarP(&o.End, "end", "e", false, "end when the replays have, or with the recording")
	o.filters(cmd)
	o.checkFlags(cmd)
	f.StringVar(&o.sample, "sample", "1/1", "show one block of N, `1/N`, always the same ones")
	f.IntVar(&o.Rate, "rate", 0, "show at most N events per second, 0 = all")
	f.Uint64VarP(&o.Command.Count, "count", "c", 0, "end after `N` events")
	f.DurationVar(&o.Duration, "duration", 0, "end after this time")
	f.DurationVar(&o.Duration, "for", 0, "the same as --duration")
	f.StringVarP(&o.Format, "output", "o", "table", "table, wide, jsonl, json, yaml")
	f.StringVar(&o.clock, "time", "receive", "TIME to show: receive, engine")
	f.BoolVar(&o.Raw, "raw", false, "add the parts of each message as hex")
	f.BoolVar(&o.Stats, "stats", false, "print tallies per publisher at the end in place of events")
	f.BoolVar(&o.ShowTokens, showTokens, false, "add token ids to JSON and YAML; --tokens is the same")
	alsoCalled(f, map[string]string{"tokens": showTokens})
	f.BoolVarP(&o.Quiet, "quiet", "q", false, "show no events")
	f.BoolVar(&o.NoHeaders, "no-headers", false, "print no line of column names")
	f.StringVar(&o.Write.Path, "write", "", "record all messages to `FILE`, - for stdout; one that is there gets the time of its begin into its name")
	f.BoolVar(&o.Write.Filtered, "write-filtered", false, "record only messages of which an event is shown")
	f.BoolVar(&o.metrics, "with-metrics", false, "record the pods' metrics pages too, for explain --read; of a running serve they always come along")
	f.Var(&o.rotate, "rotate-size", "begin a new file at this size, 0 = never")
	f.DurationVar(&o.Write.RotateTime, "rotate-time", 0, "begin a new file after this time, 0 = never")
	f.IntVar(&o.Write.Keep, "keep", 0, "files to keep in all, those of earlier runs too, 0 = all")
	enum(cmd, "output", tap.Formats())
	enum(cmd, "time", []string{"receive", "engine"})
	enum(cmd, "from", []string{"serve"})
	enum(cmd, "speed", []string{"max", "1"})
	must(cmd.MarkFlagFilename("read", "eptap"))
	must(cmd.MarkFlagFilename("write", "eptap"))
	must(cmd.RegisterFlagCompletionFunc("pod", a.completeTapped(o)))
	must(cmd.RegisterFlagCompletionFunc("model", a.completeNames("model", &o.addr)))
	for _, flag := range []string{"connect", "listen", "to", "addr", "sample"} {
		must(cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions))
	}
}

// filters adds the flags of the filter. They are read in the order in which they
// stand on the command line, because --not is about the next.
func (o *tapOptions) filters(cmd *cobra.Command) {
	f := cmd.Flags()
	usage := map[string]string{
		"pod": "pods by `PATTERN`", "rank": "data-parallel `RANK`", "engine": "engine: vllm, sglang, …", "model": "base model by `PATTERN`",
		"event": "stored, removed, cleared, gap", "tier": "gpu, cpu, disk, remote, shared, all", "lora": "adapter by `PATTERN`",
		"hash":      "first hex `DIGITS` of a block's hash, or its parent's",
		"token-ids": "chains that begin with these token `IDS`; a store whose parent is unknown is told by its own tokens",
	}
	for _, kind := range tap.FilterKinds() {
		f.Var(&filterFlag{add: func(text string) error {
			negated := o.not
			o.not = false
			if kind == "pod" {
				o.pattern(text, negated)
			}
			return o.Filter.Add(kind, text, negated)
		}}, kind, usage[kind])
	}
	f.Var(&notFlag{&o.not}, "not", "negate the filter that follows")
	f.Lookup("not").NoOptDefVal = "true"
	enum(cmd, "event", tap.Events())
	enum(cmd, "tier", tap.Tiers())
	enum(cmd, "engine", []string{"vllm", "sglang", "triton", "trtllm"})
	for _, flag := range []string{"rank", "lora", "hash", "token-ids"} {
		must(cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions))
	}
}

// pattern notes which pods must be followed at all.
func (o *tapOptions) pattern(text string, negated bool) {
	if !negated {
		o.patterns = append(o.patterns, strings.Split(text, ",")...)
	}
}

// filterType is what a filter's values are called in usage texts.
const filterType = "values"

// filterFlag is one of the filter's flags.
type filterFlag struct {
	add  func(string) error
	text []string
}

func (v *filterFlag) String() string { return strings.Join(v.text, ",") }
func (v *filterFlag) Type() string   { return filterType }
func (v *filterFlag) Set(s string) error {
	v.text = append(v.text, s)
	return v.add(s)
}

// notFlag is the switch that is about the next filter.
type notFlag struct{ set *bool }

func (v *notFlag) String() string { return "false" }
func (v *notFlag) Type() string   { return "bool" }
func (v *notFlag) Set(s string) error {
	on, err := strconv.ParseBool(s)
	*v.set = on
	return err
}

// complete checks the flags and chooses the source.
func (o *tapOptions) complete(cmd *cobra.Command, a *app) error {
	for flag, words := range map[string][]string{"output": tap.Formats(), "time": {"receive", "engine"}} {
		if err := oneOf(cmd, flag, words); err != nil {
			return err
		}
	}
	var n uint64
	if _, err := fmt.Sscanf(o.sample, "1/%d", &n); err != nil || n == 0 {
		return misuse(cmd, wrongValue(cmd.Flag("sample"), o.sample, "1/N, such as 1/16"))
	}
	if err := notNegative(cmd, "rate", "keep", "duration", "for", "rotate-time"); err != nil {
		return err
	}
	o.Sample, o.EngineTime, o.Write.RotateSize = n, o.clock == "engine", int64(o.rotate)
	o.Pods, o.Demand = o.patterns, !o.check.on
	if err := o.needs(cmd); err != nil {
		return err
	}
	host, _ := os.Hostname() // a recording without it is as good
	o.Host, o.Program = host, strings.TrimSpace(build().line())
	var err error
	if o.Source, err = o.source(cmd, a); err != nil {
		return err
	}
	if err := o.completeCheck(cmd, a); err != nil {
		return err
	}
	return o.Check()
}

// source chooses where records come from.
func (o *tapOptions) source(cmd *cobra.Command, a *app) (tap.Source, error) {
	engines := len(o.connect)+len(o.listen) > 0
	switch {
	case len(o.read) > 0 && engines || o.from == "serve" && (engines || len(o.read) > 0):
		return nil, misuse(cmd, errors.New("found several sources; expected one of --read, --from serve, and --connect with --listen"))
	case len(o.read) > 0:
		return o.file(cmd, a)
	case o.from != "" && o.from != "serve" || o.to != "":
		return nil, misuse(cmd, wrongValue(cmd.Flag("from"), o.from, "serve; times need --read"))
	case o.from == "serve":
		client, err := inspect.NewClient(o.addr, inspect.Timeouts{Dial: o.dial})
		if err != nil {
			return nil, err
		}
		if err := o.knownTo(cmd.Context(), client); err != nil {
			return nil, err
		}
		return &tap.Server{Addr: o.addr, Open: client.Frames, Pods: o.patterns}, nil
	case engines:
		return o.endpoints(cmd, a)
	}
	return o.configured(cmd, a)
}

// knownTo refuses pods that a running serve has not got.
func (o *tapOptions) knownTo(ctx context.Context, client *inspect.Client) error {
	if len(o.patterns) == 0 {
		return nil
	}
	known, err := client.Names(ctx, "pod")
	if err != nil {
		return err
	}
	var names []string
	for _, n := range known {
		names = append(names, n.Name)
	}
	return o.called(names)
}

func (o *tapOptions) file(cmd *cobra.Command, a *app) (tap.Source, error) {
	paths, err := tap.Expand(o.read)
	if err != nil {
		return nil, err
	}
	f := &tap.File{Paths: paths, Stdin: a.streams.In, Strict: o.strict, Warn: func(text string) {
		fmt.Fprintf(a.streams.Err, "warn: %s\n", out.Clean(text))
	}}
	if o.speed != "max" {
		speed, err := strconv.ParseFloat(o.speed, 64)
		if err != nil || !(speed > 0) {
			return nil, misuse(cmd, wrongValue(cmd.Flag("speed"), o.speed, "max or a number above 0"))
		}
		f.Speed = speed
	}
	for _, x := range []struct {
		flag, text string
		to         *tap.Moment
	}{{"from", o.from, &f.From}, {"to", o.to, &f.To}} {
		if x.text == "" {
			continue
		}
		if *x.to, err = tap.ParseMoment(x.text); err != nil {
			return nil, misuse(cmd, wrongValue(cmd.Flag(x.flag), x.text, "a time such as 2026-11-29T11:42:07Z, 11:42, +5m after the begin, or -5m before the end"))
		}
		if x.to.Relative() && slices.Contains(paths, "-") {
			return nil, misuse(cmd, wrongValue(cmd.Flag(x.flag), x.text, "a whole time such as 2026-11-29T11:42:07Z: stdin can be read once"))
		}
	}
	return f, nil
}

// endpoints reads --connect and --listen.
func (o *tapOptions) endpoints(cmd *cobra.Command, a *app) (tap.Source, error) {
	s := &tap.Engines{Replay: o.replay.on, ReplayFrom: o.replay.from, Log: newPlainLog(a.streams.Err), Listening: func(addr string) {
		fmt.Fprintf(a.streams.Err, "tap: listening at %s for engines that dial\n", addr)
	}}
	for _, text := range o.connect {
		addr, port, both := strings.Cut(text, ",")
		at, err := feed.Endpoint(addr)
		if err != nil {
			return nil, misuse(cmd, fmt.Errorf("%w (%w)", wrongValue(cmd.Flag("connect"), text, "HOST:PORT or HOST:PORT,REPLAYPORT"), err))
		}
		p := feed.Publisher{Endpoint: at}
		if both {
			if p.Replay, err = feed.Endpoint(at[:strings.LastIndexByte(at, ':')+1] + port); err != nil {
				return nil, misuse(cmd, wrongValue(cmd.Flag("connect"), text, "HOST:PORT,REPLAYPORT"))
			}
		}
		if o.replay.on && !both {
			return nil, misuse(cmd, wrongValue(cmd.Flag("connect"), text, "HOST:PORT,REPLAYPORT, for --replay"))
		}
		if !o.replay.on {
			p.Replay = ""
		}
		s.Publishers = append(s.Publishers, p)
	}
	for _, text := range o.listen {
		at, err := feed.ListenEndpoint(text)
		if err != nil {
			return nil, misuse(cmd, fmt.Errorf("%w (%w)", wrongValue(cmd.Flag("listen"), text, ":PORT, or HOST:PORT of this machine"), err))
		}
		s.Listen = append(s.Listen, at)
	}
	o.Wanted = len(s.Publishers)
	return s, nil
}

// configured takes the pods of the file, as far as --pod lets them through.
func (o *tapOptions) configured(cmd *cobra.Command, a *app) (tap.Source, error) {
	cfg, err := a.loadConfig(o.config)
	if err != nil {
		var own *inspect.Error
		if errors.As(err, &own) && o.config == "" {
			own.Hint += ", or without one: --connect HOST:PORT"
		}
		return nil, err
	}
	var names []string
	for _, p := range cfg.Pods {
		names = append(names, p.Name)
	}
	if err := o.called(names); err != nil {
		return nil, err
	}
	pods := slices.DeleteFunc(slices.Clone(cfg.Pods), func(p pod.Spec) bool {
		return len(o.patterns) > 0 && !slices.ContainsFunc(o.patterns, func(pattern string) bool { return recording.Glob(pattern, p.Name) })
	})
	o.Wanted = len(pods)
	s := &tap.Engines{
		Pods: pods, Replay: o.replay.on, ReplayFrom: o.replay.from, Limits: feed.Limits{MessageBytes: int(cfg.Limits.FrameBytes)}, Log: newPlainLog(a.streams.Err),
	}
	if o.metrics {
		s.Metrics, s.Devices = cfg.Scrape.Interval, cfg.Scrape.Devices
	}
	return s, nil
}

// called refuses a pattern of --pod that fits none of the pods there are.
func (o *tapOptions) called(names []string) error {
	for _, pattern := range o.patterns {
		if !slices.ContainsFunc(names, func(name string) bool { return recording.Glob(pattern, name) }) {
			return tap.NoSuchPod(pattern, names)
		}
	}
	return nil
}

// asked turns a signal into requests; end stops that.
func asked(sig os.Signal) (requests <-chan struct{}, end func()) {
	signals, ask, done := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, sig)
	go func() {
		for {
			select {
			case <-signals:
			case <-done:
				return
			}
			select {
			case ask <- struct{}{}:
			case <-done:
				return
			}
		}
	}()
	return ask, func() { signal.Stop(signals); close(done) }
}
