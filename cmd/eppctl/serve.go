package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/serve"
)

type serveOptions struct {
	config                       string
	extProc, health, admin, page string
	endpointsFile                string
	decisions                    string
	strictModels                 bool
	drain                        time.Duration
	logLevel, logFormat          string
	printConfig                  bool
	format                       string

	serve.Options
}

// newServe builds the command; run replaces what it does, for tests.
func newServe(a *app, run func(context.Context, *serve.Config, serve.Options) error) *cobra.Command {
	o := &serveOptions{}
	if run == nil {
		run = serve.Run
	}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer Envoy: pick a pod for every request",
		Long: `Answer Envoy's ext_proc: pick a pod for every request.

It subscribes to the KV events of every pod, reads their metrics pages, and keeps
running while the configuration file changes. SIGHUP reads the file at once. The
first SIGTERM or SIGINT turns readiness off and lets open streams end, for up to
--drain-timeout; the second ends at once.`,
		Example: `  # with a file
  eppctl serve --config eppctl.yaml

  # the admin API on a socket, a debug log in JSON
  eppctl serve --config eppctl.yaml --admin-addr unix:/run/eppctl.sock --log-level debug --log-format json

  # record decisions (no prompts), and ask later what other weights would do
  eppctl serve --config eppctl.yaml --record-decisions /var/lib/eppctl/decisions.eptap
  eppctl replay --decisions /var/lib/eppctl/decisions.eptap --weight kv=2

  # what would be in force, and where does each value come from?
  eppctl serve --config eppctl.yaml --print-config

  # is the file right, and does every pod answer?
  eppctl check --config eppctl.yaml`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			cfg, err := a.loadConfig(o.config, o.overrides(cmd)...)
			if err != nil {
				return err
			}
			if o.printConfig {
				return o.printed(cmd, cfg).print(a.streams, o.format)
			}
			o.Level = &slog.LevelVar{}
			log := o.logger(a)
			ctx, stop := serveSignals(cmd.Context(), log)
			defer stop()
			o.Log, o.Version, o.Reload = log, build().Version, hangups(ctx)
			o.Ready = func(at serve.Addresses) {
				log.Info("listening", "ext_proc", at.ExtProc, "health", at.Health, "admin", at.Admin, "metrics", at.Metrics)
			}
			return run(ctx, cfg, o.Options)
		},
	}
	configFlag(cmd, &o.config)
	f := cmd.Flags()
	f.StringVar(&o.extProc, "ext-proc-addr", ":9002", "`ADDR` for Envoy's ext_proc; beats listen.ext_proc")
	f.StringVar(&o.health, "health-addr", ":9003", "`ADDR` for gRPC health; beats listen.health")
	f.StringVar(&o.admin, "admin-addr", "127.0.0.1:9004", "`ADDR` of the admin API, or unix:/PATH; empty = off; beats listen.admin")
	f.StringVar(&o.page, "metrics-addr", ":9090", "`ADDR` of the Prometheus page; beats listen.metrics")
	f.StringVar(&o.endpointsFile, "endpoints-file", "", "EDS `FILE` kept for Envoy; beats envoy.endpoints_file")
	f.StringVar(&o.decisions, "record-decisions", "", "record what is decided to `FILE`, for replay --decisions; beats decisions.file")
	f.BoolVar(&o.strictModels, "strict-models", false, "refuse unknown models with 404; beats strict_models")
	f.DurationVar(&o.drain, "drain-timeout", 25*time.Second, "how long open streams may go on after SIGTERM; beats drain_timeout")
	f.StringVar(&o.RequestBodyMode, "request-body-mode", "auto", "body mode of a proxy that does not state its own: auto, none, streamed, buffered, buffered-partial, full-duplex")
	f.StringVar(&o.EndSignal, "end-signal", "auto", "how the end of a request is learned: auto, stream, metrics")
	f.DurationVar(&o.EndTTL, "end-ttl", 5*time.Minute, "how long a request counts as in flight when nobody tells its end")
	f.IntVar(&o.Fallbacks, "fallbacks", 0, "further endpoints named behind the picked one")
	f.BoolVar(&o.EmitScores, "emit-endpoint-scores", false, "add every candidate's score to the dynamic metadata")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn, error; beats log_level")
	f.StringVar(&o.logFormat, "log-format", "text", "text, json")
	f.BoolVar(&o.printConfig, "print-config", false, "print every value in force and where it comes from, and start nothing; passwords in URLs are masked")
	f.StringVarP(&o.format, "output", "o", "table", "of --print-config: table, json, yaml")
	must(cmd.MarkFlagFilename("record-decisions", "eptap"))
	enum(cmd, "request-body-mode", bodyModes)
	enum(cmd, "end-signal", endSignals)
	enum(cmd, "log-level", serve.LogLevels)
	enum(cmd, "log-format", []string{"text", "json"})
	enum(cmd, "output", printFormats)
	return cmd
}

var (
	bodyModes  = []string{"auto", "none", "streamed", "buffered", "buffered-partial", "full-duplex"}
	endSignals = []string{"auto", "stream", "metrics"}
)

// check refuses what serve itself would refuse after it has begun.
func (o *serveOptions) check(cmd *cobra.Command) error {
	if err := oneOf(cmd, "request-body-mode", bodyModes); err != nil {
		return err
	}
	if err := oneOf(cmd, "end-signal", endSignals); err != nil {
		return err
	}
	if err := oneOf(cmd, "output", printFormats); err != nil {
		return err
	}
	if err := oneOf(cmd, "log-level", serve.LogLevels); err != nil {
		return err
	}
	if err := oneOf(cmd, "log-format", []string{"text", "json"}); err != nil {
		return err
	}
	if err := needs(cmd, []need{{[]string{"output"}, o.printConfig, "needs --print-config"}}); err != nil {
		return err
	}
	if o.Fallbacks < 0 || o.Fallbacks > serve.MaxFallbacks {
		return misuse(cmd, wrongValue(cmd.Flag("fallbacks"), cmd.Flag("fallbacks").Value.String(), fmt.Sprintf("0 to %d", serve.MaxFallbacks)))
	}
	return positive(cmd, "end-ttl")
}

// keyed are the flags that beat a key of the file.
func (o *serveOptions) keyed() []keyedFlag {
	return []keyedFlag{
		{"ext-proc-addr", "listen.ext_proc", func(c *serve.Config) { c.Listen.ExtProc = o.extProc }},
		{"health-addr", "listen.health", func(c *serve.Config) { c.Listen.Health = o.health }},
		{"admin-addr", "listen.admin", func(c *serve.Config) { c.Listen.Admin = o.admin }},
		{"metrics-addr", "listen.metrics", func(c *serve.Config) { c.Listen.Metrics = o.page }},
		{"endpoints-file", "envoy.endpoints_file", func(c *serve.Config) { c.Envoy.EndpointsFile = o.endpointsFile }},
		{"record-decisions", "decisions.file", func(c *serve.Config) { c.Decisions.File = o.decisions }},
		{"strict-models", "strict_models", func(c *serve.Config) { c.StrictModels = o.strictModels }},
		{"drain-timeout", "drain_timeout", func(c *serve.Config) { c.Drain = o.drain }},
		{"log-level", "log_level", func(c *serve.Config) { c.LogLevel = o.logLevel }},
	}
}

type keyedFlag struct {
	flag, key string
	set       func(*serve.Config)
}

// overrides turns the flags that were given, or set by the environment, into
// changes of the configuration.
func (o *serveOptions) overrides(cmd *cobra.Command) []serve.Override {
	var list []serve.Override
	for _, k := range o.keyed() {
		if f := cmd.Flag(k.flag); f.Changed {
			list = append(list, serve.Override{Key: k.key, From: origin(f), Set: k.set})
		}
	}
	return list
}

func (o *serveOptions) logger(a *app) *slog.Logger {
	opts := &slog.HandlerOptions{Level: o.Level}
	if o.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(a.streams.Err, opts))
	}
	return slog.New(slog.NewTextHandler(a.streams.Err, opts))
}

// serveSignals ends the context at the first signal and the process at the
// second: a drain that hangs must not need SIGKILL. stop ends the listening.
func serveSignals(parent context.Context, log *slog.Logger) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	ch, done := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer signal.Stop(ch)
		for {
			select {
			case <-done:
				return
			case s := <-ch:
				if ctx.Err() != nil {
					log.Warn("second signal: ending at once", "signal", s.String())
					os.Exit(exitFailed)
				}
				log.Debug("signal", "signal", s.String())
				cancel()
			}
		}
	}()
	return ctx, func() { cancel(); close(done) }
}

// hangups turns SIGHUP into requests to read the configuration.
func hangups(ctx context.Context) <-chan struct{} {
	ch, ask := make(chan os.Signal, 1), make(chan struct{}, 1)
	signal.Notify(ch, syscall.SIGHUP)
	go func() {
		defer signal.Stop(ch)
		for {
			select {
			case <-ctx.Done():
				return
			case <-ch:
				select {
				case ask <- struct{}{}:
				default: // one is waiting already
				}
			}
		}
	}()
	return ask
}
