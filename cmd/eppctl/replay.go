package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect/replay"
	"github.com/eppctl/eppctl/internal/inspect/replay/engine"
	"github.com/eppctl/eppctl/internal/inspect/replay/fleet"
	"github.com/eppctl/eppctl/internal/inspect/replay/route"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
)

// replayOptions are the flags that are not yet what replay takes.
type replayOptions struct {
	replay.Options
	profile                  string
	pool, host, slots        int
	scrape, delay, replays   time.Duration
	pace                     float64
	params, slow, away, sets []string
	weights                  []string
}

// mostPace is how much slower or faster than its profile an engine can be: no two
// devices that serve one model lie so far apart.
const mostPace = 1000

// newReplay builds the command; run replaces what it does, for tests.
func newReplay(a *app, run func(context.Context, *replay.Options) error) *cobra.Command {
	o := &replayOptions{Options: replay.Options{Fleet: fleet.Default()}}
	if run == nil {
		run = func(ctx context.Context, o *replay.Options) error { return replay.Run(ctx, o, a.streams) }
	}
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Play a trace on a simulated fleet, under eppctl and under other policies",
		Long: `Play a trace or a generated workload on a simulated fleet in virtual time. eppctl
takes part with its real index, ledger and decision; beside it stand the rules of
other routers and an omniscient one. Equal seeds give equal output, to the byte.

Traces are read as published: Mooncake and Qwen-Bailian JSON lines, Azure CSV,
gzip-compressed or not; two are in testdata/traces of the sources. Workloads are
made from parameters (--param):

` + generators() + `
Decisions are those that serve --record-decisions wrote: the requests that came, on
as many simulated pods as there were, under the recorded weights. The first row is
what was observed, CHANGED the share of the decisions as they were recorded that
a policy would have given to another pod. The engines are simulated: read policies
against the row "recorded", and that row against the observed one.
--decisions also takes a 'PATTERN' of the files of a rotation.

In the table, TTFT is the time to first token: mean, quantiles, share below 2 s. HIT
is the cached share of prompt tokens, BUSY the share of the time in which engines
compute, SKEW the prefill tokens of the pod with the most over those of the mean one,
PREEMPT counts preemptions and RESENT requests that were sent again.

Policies:

` + policies() + "\n\n" + weightsHelp(),
		Example: `  # eppctl beside round robin on a trace, at three times its speed
  eppctl replay --trace testdata/traces/mooncake_conversation_trace.jsonl.gz --speed 3 --policy pool,round-robin

  # a load sweep with charts
  eppctl replay --trace trace.jsonl --speed 1,2,2.5,3,3.5 --policy pool,llmd-sticky,least-in-flight --html sweep.html

  # what another weight would do, with four replicas and a slow pod
  eppctl replay --workload shared_prefix --param num_groups=64 --replicas 4 --slow pod-3=3x --weight kv=2 -o json

  # what another weight would have done to what this serve has served
  eppctl serve --config eppctl.yaml --record-decisions decisions.eptap
  eppctl replay --decisions decisions.eptap --weight kv=2 --weight breaker.depth=16

  # the recorded weights beside presets and other routers, a day in four files, at twice the load
  eppctl replay --decisions 'decisions*.eptap' --policy recorded,fixed,llmd-sticky --speed 1,2 --html day.html`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.settle(cmd); err != nil {
				return err
			}
			ctx, stop := a.interruptible(cmd.Context())
			defer stop()
			return run(ctx, &o.Options)
		},
	}
	o.flags(cmd)
	return cmd
}

func (o *replayOptions) flags(cmd *cobra.Command) {
	f, c := cmd.Flags(), &o.Fleet
	f.StringVar(&o.Trace, "trace", "", "play the requests of `FILE`, - for stdin")
	f.StringArrayVar(&o.Decisions, "decisions", nil, "play the requests of `FILE`, recorded by serve --record-decisions, - for stdin; repeatable")
	f.StringVar(&o.Model, "model", "", "with --decisions, the base model `NAME` (default the one with the most)")
	f.StringVar(&o.Workload, "workload", "", "play generated requests: "+strings.Join(workload.Generators(), ", "))
	f.StringArrayVar(&o.params, "param", nil, "with --workload, a parameter `NAME=NUMBER`; repeatable")
	f.IntVar(&o.Requests, "requests", 0, "play the first `N` only, 0 = all")
	f.StringSliceVar(&o.Policies, "policy", []string{"pool", "least-in-flight", "round-robin"}, "policies to play, `NAMES` with commas")
	f.Float64SliceVar(&o.Speeds, "speed", []float64{1}, "divide arrival times by each of these `NUMBERS`")
	f.Lookup("speed").DefValue = "1" // pflag shows it with six decimals
	f.StringVar(&o.profile, "profile", engine.Profiles()[0], "engines: "+strings.Join(engine.Profiles(), ", "))
	f.Float64Var(&o.pace, "pace", 1, "engines take `FACTOR` times as long as the profile; with --decisions fitted unless given")
	f.IntVar(&c.Pods, "pods", c.Pods, "how many engines; with --decisions as many as were recorded")
	f.IntVar(&o.pool, "kv-pool-tokens", 0, "`TOKENS` of one engine's KV pool (default the recorded, or the profile's)")
	f.IntVar(&o.host, "host-tokens", 0, "`TOKENS` of host memory behind it, 0 = none")
	f.IntVar(&o.Adapters, "adapters", 0, "LoRA adapters the requests are spread over, 0 = none")
	f.IntVar(&o.slots, "adapter-slots", 8, "adapters that fit an engine at once")
	f.IntVar(&c.Replicas, "replicas", c.Replicas, "routers that know nothing of each other")
	f.DurationVar(&o.scrape, "scrape-interval", 250*time.Millisecond, "between two scrapes of a pod; with --decisions as recorded")
	f.DurationVar(&o.delay, "event-delay", 3*time.Millisecond, "until KV events arrive, on average")
	f.Float64Var(&c.Loss, "event-loss", 0, "`SHARE` of event batches that do not arrive")
	f.DurationVar(&o.replays, "event-replay", 50*time.Millisecond, "until lost batches are fetched, 0 = never")
	f.StringArrayVar(&o.slow, "slow", nil, "slow a pod down: `POD=FACTORx[@TIME]`; repeatable")
	f.StringArrayVar(&o.away, "restart", nil, "restart a pod with an empty cache: `POD@TIME+DURATION`; repeatable")
	f.Uint64Var(&c.Seed, "seed", c.Seed, "of arrivals, steps and generators")
	f.StringArrayVar(&o.sets, "set", nil, "a constant of weights for eppctl's own policies, by its key or its term: `NAME=VALUE`; repeatable")
	f.StringArrayVar(&o.weights, "weight", nil, "a constant of weights for the policy what-if, by its key or its term: `NAME=VALUE`; repeatable")
	f.StringVarP(&o.Format, "output", "o", "table", "table, json")
	f.StringVar(&o.HTML, "html", "", "write a report with charts to `FILE`")
	enum(cmd, "workload", workload.Generators())
	enum(cmd, "policy", append([]string{replay.Recorded, replay.WhatIf}, route.Names()...))
	for _, flag := range []string{"set", "weight"} {
		must(cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(equals(pick.WeightNames()), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)))
	}
	enum(cmd, "profile", engine.Profiles())
	enum(cmd, "output", replay.Formats())
	must(cmd.MarkFlagFilename("decisions", "eptap"))
	must(cmd.MarkFlagFilename("trace", "jsonl", "csv", "gz"))
	must(cmd.MarkFlagFilename("html", "html"))
}

// settle makes options of flags.
func (o *replayOptions) settle(cmd *cobra.Command) error {
	for _, x := range []struct {
		flag   string
		values []string
	}{{"output", replay.Formats()}, {"profile", engine.Profiles()}} {
		if err := oneOf(cmd, x.flag, x.values); err != nil {
			return err
		}
	}
	if err := o.one(cmd); err != nil {
		return err
	}
	if err := positive(cmd, "pods", "replicas", "scrape-interval", "adapter-slots", "pace"); err != nil {
		return err
	}
	if err := notNegative(cmd, "kv-pool-tokens", "host-tokens"); err != nil {
		return err
	}
	if o.pace < 1.0/mostPace || o.pace > mostPace {
		return misuse(cmd, wrongValue(cmd.Flag("pace"), cmd.Flag("pace").Value.String(), fmt.Sprintf("a number from %g to %d", 1.0/mostPace, mostPace)))
	}
	o.Speeds = once(o.Speeds)
	p, err := engine.ProfileByName(o.profile)
	if err != nil {
		return misuse(cmd, err)
	}
	if o.pool > 0 {
		p.PoolTokens = o.pool
	}
	p = p.Scaled(o.pace)
	p.HostTokens = o.host
	if o.Adapters > 0 || len(o.Decisions) > 0 {
		p.AdapterSlots = o.slots
	}
	c := &o.Fleet
	c.Profile = p
	c.Scrape, c.EventDelay, c.ReplayDelay = o.scrape.Seconds(), o.delay.Seconds(), o.replays.Seconds()
	given := cmd.Flags().Changed
	o.AsRecorded = replay.AsRecorded{Pods: !given("pods"), Scrape: !given("scrape-interval"), Pool: !given("kv-pool-tokens"), Pace: !given("pace")}
	if err := o.lists(cmd); err != nil {
		return err
	}
	o.compare(given("policy"))
	return nil
}

// one refuses all but one source of requests, and what goes with another.
func (o *replayOptions) one(cmd *cobra.Command) error {
	var found []string
	for _, x := range []struct {
		flag string
		is   bool
	}{{"--trace", o.Trace != ""}, {"--workload", o.Workload != ""}, {"--decisions", len(o.Decisions) > 0}} {
		if x.is {
			found = append(found, x.flag)
		}
	}
	switch {
	case len(found) == 0:
		return misuse(cmd, errors.New("found neither --trace nor --workload nor --decisions; expected one of them"))
	case len(found) > 1:
		return misuse(cmd, fmt.Errorf("found %s; expected one of them", strings.Join(found, " and ")))
	case o.Workload == "" && len(o.params) > 0:
		return misuse(cmd, fmt.Errorf("found --param with %s; parameters are of a --workload", found[0]))
	case len(o.Decisions) == 0 && o.Model != "":
		return misuse(cmd, fmt.Errorf("found --model with %s; models are of --decisions", found[0]))
	case len(o.Decisions) > 0 && o.Adapters > 0:
		return misuse(cmd, errors.New("found --adapters with --decisions; these tell their adapters themselves"))
	}
	return nil
}

// compare completes the policies by what the rest of the command line is about.
func (o *replayOptions) compare(given bool) {
	var first []string
	if len(o.Decisions) > 0 {
		first = append(first, replay.Recorded)
	}
	if len(o.weights) > 0 {
		if len(first) == 0 {
			first = append(first, "pool")
		}
		first = append(first, replay.WhatIf)
	}
	rest := o.Policies
	if !given && len(first) > 1 {
		rest = nil // the two are what was asked for
	} else if !given && len(first) > 0 {
		rest = slices.DeleteFunc(slices.Clone(rest), func(p string) bool { return p == "pool" })
	}
	o.Policies = once(slices.Concat(first, rest))
}

// once is a list without what stood in it before.
func once[T comparable](list []T) (short []T) {
	for _, x := range list {
		if !slices.Contains(short, x) {
			short = append(short, x)
		}
	}
	return short
}

// equals makes completions of names that a value follows.
func equals(names []string) []string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = n + "="
	}
	return list
}

// lists reads the flags that are given several times.
func (o *replayOptions) lists(cmd *cobra.Command) error {
	o.Parameters = workload.Parameters{}
	for _, text := range o.params {
		k, v, err := replay.ParseParameter(text)
		if err != nil {
			return misuse(cmd, fmt.Errorf("--param: %w", err))
		}
		o.Parameters[k] = v
	}
	c := &o.Fleet
	var errs []error
	c.Slow, errs = parseAll("slow", o.slow, replay.ParseSlow, errs)
	c.Restarts, errs = parseAll("restart", o.away, replay.ParseRestart, errs)
	c.Settings, errs = parseAll("set", o.sets, route.ParseSetting, errs)
	o.Weights, errs = parseAll("weight", o.weights, pick.ParseWeight, errs)
	if len(errs) > 0 {
		return misuse(cmd, errs[0])
	}
	return nil
}

func parseAll[T any](flag string, texts []string, parse func(string) (T, error), errs []error) (list []T, _ []error) {
	for _, text := range texts {
		x, err := parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: found %w", flag, err))
		}
		list = append(list, x)
	}
	return list, errs
}

func generators() string {
	var b strings.Builder
	for _, name := range workload.Generators() {
		fmt.Fprintf(&b, "  %-14s %s\n", name, workload.About(name))
	}
	return b.String()
}

func policies() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-16s %s\n", replay.Recorded, "eppctl under the recorded weights; with --decisions always there")
	fmt.Fprintf(&b, "  %-16s %s\n", replay.WhatIf, "the same, or pool, with each --weight")
	for _, p := range route.Policies() {
		fmt.Fprintf(&b, "  %-16s %s\n", p.Name, p.About)
	}
	return strings.TrimRight(b.String(), "\n")
}
