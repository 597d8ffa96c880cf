package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/check"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/inspect/tap"
)

// tapCheck is what --check adds to tap: the probes of check, and its report.
type tapCheck struct {
	check.Command
	on     bool
	expect []string
	config check.Config
}

func (o *tapOptions) checkFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.check.on, "check", false, "print what makes the picker blind, and no events; ends after 10 s if nothing else is said")
	f.StringVar(&o.check.FailOn, "fail-on", "warning", "with --check, the mildest finding that makes the exit code 3: warning, error")
	f.DurationVar(&o.check.Timeout, "timeout", checkTimeout, "with --check, for the questions to one pod")
	f.StringArrayVar(&o.check.expect, "expect", nil, "exit with 3 unless `EXPR` holds of the account, such as events>0 or gaps=0, repeatable; matched is what the filter shows, the others count all")
	enum(cmd, "fail-on", []string{"warning", "error"})
	must(cmd.RegisterFlagCompletionFunc("expect", cobra.FixedCompletions(tap.Countables(), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)))
}

// completeCheck checks the flags of checkFlags. The source is chosen already.
func (o *tapOptions) completeCheck(cmd *cobra.Command, a *app) error {
	for _, text := range o.check.expect {
		x, err := tap.Expect(text)
		if err != nil {
			return misuse(cmd, fmt.Errorf("%s: %w", origin(cmd.Flag("expect")), err))
		}
		o.Expect = append(o.Expect, x)
	}
	if !o.check.on {
		return nil
	}
	if err := oneOf(cmd, "fail-on", []string{"warning", "error"}); err != nil {
		return err
	}
	if err := positive(cmd, "timeout"); err != nil {
		return err
	}
	if !slices.Contains(check.Formats(), o.Format) {
		return misuse(cmd, errors.New("--check prints one report: -o table, json or yaml"))
	}
	if o.Stats || o.Raw || o.Write.Path == "-" {
		return misuse(cmd, errors.New("--check prints a report; not together with --stats, --raw or --write -"))
	}
	if !o.Bounded() {
		o.Duration = check.ListenFor
	}
	o.check.Format, o.Format, o.Quiet = o.Format, "table", true
	return o.compare(a)
}

// compare says what the streams are held against: the configured pods, or the
// endpoints as they are.
func (o *tapOptions) compare(a *app) error {
	switch src := o.Source.(type) {
	case *tap.Engines:
		if len(src.Pods) > 0 {
			break
		}
		var names []string
		for _, p := range src.Publishers {
			s := publisherSpec(p)
			names = append(names, s.Name)
			if o.Filter.AdmitsPod(s.Name) {
				o.check.config.Pods = append(o.check.config.Pods, s)
			}
		}
		if len(src.Listen) > 0 {
			return nil // who dials is not known yet
		}
		return o.called(names)
	default:
		o.check.ConfigOnly = true
		if o.config == "" {
			return nil
		}
	}
	cfg, err := a.loadConfig(o.config)
	if err != nil {
		return err
	}
	pods := cfg.Pods
	if src, ok := o.Source.(*tap.Engines); ok {
		pods = src.Pods
	}
	pods = slices.DeleteFunc(slices.Clone(pods), func(p pod.Spec) bool { return !o.Filter.AdmitsPod(p.Name) })
	o.check.config = compared(cfg, pods)
	o.check.config.EndpointsFile, o.check.config.Tokenizers = "", nil // serve's, not the streams'
	return nil
}

// publisherSpec is all that is known of an endpoint: there is no API to ask.
func publisherSpec(p feed.Publisher) pod.Spec {
	s := pod.Spec{Name: cmp.Or(p.Name, strings.TrimPrefix(p.Endpoint, "tcp://")), Events: []string{p.Endpoint}}
	if p.Replay != "" {
		s.Replay = []string{p.Replay}
	}
	return s
}

// runCheck probes, taps for a while, and prints what the two come to.
func (o *tapOptions) runCheck(ctx context.Context, s *out.Streams) error {
	o.check.Prober = newProber()
	o.check.Listen = &check.Listening{Source: o.Source.String(), Run: func(ctx context.Context, take func(*recording.Record)) error {
		o.Consumers = append(o.Consumers, consumer{&o.Filter, take})
		return o.Command.Run(ctx, s)
	}}
	switch o.Source.(type) {
	case *tap.File:
		o.check.Listen.Past = true
	case *tap.Server:
		o.check.Listen.Before = o.before
	}
	return o.check.Run(ctx, o.check.config, s)
}

// before is what serve has had of the streams that we listen to.
func (o *tapOptions) before(ctx context.Context) (list []check.Before, err error) {
	client, err := inspect.NewClient(o.addr, inspect.Timeouts{Dial: o.dial})
	if err != nil {
		return nil, err
	}
	pods, err := client.Streams(ctx)
	for name, streams := range pods {
		for _, s := range streams {
			b := check.Before{Pod: name, Rank: s.Rank, Last: s.LastSeq, State: s.Sync, Why: s.Why}
			if s.EventAgeMs != nil {
				b.Any, b.Age = true, time.Duration(*s.EventAgeMs)*time.Millisecond
			}
			list = append(list, b)
		}
	}
	return list, err
}

// newProber reaches pods as Envoy does, without a proxy.
func newProber() *feed.Prober {
	return &feed.Prober{Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: feed.HeaderBytes}}}
}

// consumer hears the records of the publishers that the filter lets through.
type consumer struct {
	filter *tap.Filter
	take   func(*recording.Record)
}

// Take implements tap.Consumer.
func (c consumer) Take(e *tap.Entry) {
	if c.filter.Admits(e) {
		c.take(e.Record)
	}
}
