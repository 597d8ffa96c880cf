package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/core/chat"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/spelling"
	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/inspect/check"
	"github.com/eppctl/eppctl/internal/modelsource"
	"github.com/eppctl/eppctl/internal/serve"
)

// checkTimeout is for all questions to one pod.
const checkTimeout = 10 * time.Second

type checkOptions struct {
	check.Command
	config string
}

// newCheck builds the command; run replaces the probing, for tests.
func newCheck(a *app, run func(ctx context.Context, o *checkOptions, config check.Config) error) *cobra.Command {
	o := &checkOptions{}
	if run == nil {
		run = func(ctx context.Context, o *checkOptions, config check.Config) error {
			o.Prober = newProber()
			o.Hub = func() (*modelsource.Settings, error) { return modelsource.FromEnv(a.getenv) }
			return o.Run(ctx, config, a.streams)
		}
	}
	cmd := &cobra.Command{
		Use:   "check [POD]...",
		Short: "Check the configuration and every pod's ports",
		Long: `Check the configuration, then every pod: does it answer, which engine and model
is it, can its metrics page be read, do its event and replay ports speak ZeroMQ,
does it tokenize, and does it say the same as the file: the names of models above
all. The folder of the endpoints file must be writable, and the tokenizer of each
model is loaded as serve loads it: a name of the hub is asked for there, and fetched
into the cache (HF_HOME). One line per fact.`,
		Example: `  # before a start, or in CI
  eppctl check --config eppctl.yaml

  # the file and the tokenizers that are here, nothing is dialled
  eppctl check --config eppctl.yaml --config-only

  # two pods, for a script
  eppctl check vllm-0 vllm-1 -o json`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completePods(&o.config),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf(cmd, "output", check.Formats()); err != nil {
				return err
			}
			if err := oneOf(cmd, "fail-on", []string{"warning", "error"}); err != nil {
				return err
			}
			if err := positive(cmd, "timeout"); err != nil {
				return err
			}
			if err := needs(cmd, []need{{[]string{"timeout"}, !o.ConfigOnly, "is for pods, which --config-only does not ask"}}); err != nil {
				return err
			}
			cfg, err := a.loadConfig(o.config)
			if err != nil {
				return err
			}
			pods, err := choose(cfg.Pods, args)
			if err != nil {
				return err
			}
			ctx, stop := a.interruptible(cmd.Context())
			defer stop()
			return run(ctx, o, compared(cfg, pods))
		},
	}
	configFlag(cmd, &o.config)
	f := cmd.Flags()
	f.BoolVar(&o.ConfigOnly, "config-only", false, "only read files, dial nothing")
	f.DurationVar(&o.Timeout, "timeout", checkTimeout, "for one pod")
	f.StringVarP(&o.Format, "output", "o", "table", "table, json, yaml")
	f.StringVar(&o.FailOn, "fail-on", "warning", "mildest finding that makes the exit code 3: warning, error")
	enum(cmd, "output", check.Formats())
	enum(cmd, "fail-on", []string{"warning", "error"})
	return cmd
}

// compared is the part of the configuration that can be held against the world.
func compared(cfg *serve.Config, pods []pod.Spec) check.Config {
	c := check.Config{Path: cfg.Path, Pods: pods, Fleet: cfg.Pods, Whole: len(pods) == len(cfg.Pods), EndpointsFile: cfg.Envoy.EndpointsFile}
	for _, m := range cfg.Models {
		c.Models = append(c.Models, check.Model{Name: m.Name, Aliases: m.Aliases, Adapters: m.Adapters})
		if m.Tokenizer.Loads() {
			c.Tokenizers = append(c.Tokenizers, source(m))
		}
	}
	return c
}

// source is where a model's native tokenizer comes from. Pods that are not asked yet
// are taken for vLLM: whose chats they prepare decides no loading.
func source(m serve.Model) check.Tokenizer {
	engine := chat.VLLM
	if m.Tokenizer.Engine == "sglang" {
		engine = chat.SGLang
	}
	o, err := m.Tokenizer.Options(engine)
	must(err) // of a time zone, which the file was checked for
	return check.Tokenizer{Model: m.Name, Source: m.Tokenizer.Source, Revision: m.Tokenizer.Revision, Options: o}
}

// choose picks the named pods, all of them without a name.
func choose(pods []pod.Spec, names []string) ([]pod.Spec, error) {
	if len(names) == 0 {
		return pods, nil
	}
	var chosen []pod.Spec
	for _, name := range names {
		found := false
		for _, p := range pods {
			if p.Name == name {
				chosen, found = append(chosen, p), true
			}
		}
		if !found {
			var known []string
			for _, p := range pods {
				known = append(known, p.Name)
			}
			return nil, &inspect.Error{
				Kind: inspect.Usage, Code: "E_USAGE", What: fmt.Sprintf("no pod is called %q; %s", name, spelling.Among(name, known)),
			}
		}
	}
	return chosen, nil
}
