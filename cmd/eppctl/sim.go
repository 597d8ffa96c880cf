package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/sim"
)

// newSim builds the command; run replaces what it does, for tests.
func newSim(a *app, run func(context.Context, sim.RunOptions) error) *cobra.Command {
	o := sim.RunOptions{}
	engine := "vllm"
	if run == nil {
		run = func(ctx context.Context, o sim.RunOptions) error { return sim.Run(ctx, o, a.streams.Out) }
	}
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Run simulated engines on loopback",
		Long: `Run a fleet of simulated engines on loopback. They speak the real interfaces:
completions and chat, /tokenize, /metrics, KV events over ZeroMQ with replay. Their
answers are nonsense; their caches and their timing are not. For trying out eppctl
without a GPU.`,
		Example: `  # four engines and a configuration for them, whose first lines say how to go on
  eppctl sim --engines 4 --config /tmp/eppctl.yaml
  eppctl serve --config /tmp/eppctl.yaml

  # half of them SGLang, ten times as fast as the real ones
  eppctl sim --engines 8 --mixed --speedup 10`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			kind, ok := pod.ParseEngine(engine)
			if !ok || kind != pod.EngineVLLM && kind != pod.EngineSGLang {
				return misuse(cmd, wrongValue(cmd.Flag("engine"), engine, "vllm or sglang"))
			}
			if err := positive(cmd, "engines", "speedup"); err != nil {
				return err
			}
			if err := needs(cmd, []need{{[]string{"engine"}, !o.Fleet.Mixed, "goes not with --mixed, which has both"}}); err != nil {
				return err
			}
			o.Fleet.Engine.Kind = kind
			ctx, stop := a.interruptible(cmd.Context())
			defer stop()
			return run(ctx, o)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Fleet.Engines, "engines", 4, "how many")
	f.StringVar(&engine, "engine", engine, "vllm or sglang")
	f.BoolVar(&o.Fleet.Mixed, "mixed", false, "every other engine is SGLang")
	f.BoolVar(&o.Fleet.IPv6, "ipv6", false, "every other engine listens on [::1]")
	f.StringVar(&o.Fleet.Engine.Model, "model", "sim", "model `NAME`")
	f.StringSliceVar(&o.Fleet.Engine.Adapters, "adapters", nil, "LoRA `NAMES` served beside it")
	f.IntVar(&o.Fleet.Engine.BlockSize, "block-size", 0, "tokens per block (default 32, SGLang 16)")
	f.IntVar(&o.Fleet.Engine.Blocks, "blocks", 0, "blocks of the KV pool (default 282000 tokens)")
	f.IntVar(&o.Fleet.Engine.MaxQueued, "max-queued", 0, "further requests are refused with 503, 0 = no limit")
	f.Float64Var(&o.Fleet.Engine.Speedup, "speedup", 1, "divides every step's time")
	f.BoolVar(&o.Fleet.Engine.NoEvents, "no-events", false, "publish no KV events")
	f.StringVar(&o.Config, "config", "", "write the configuration for serve to `FILE` instead of printing it")
	enum(cmd, "engine", []string{"vllm", "sglang"})
	f.StringVar(&o.Listen.EndpointsFile, "endpoints-file", "", "EDS `FILE` named in it, for Envoy (default endpoints.json beside it)")
	must(cmd.MarkFlagFilename("config", "yaml"))
	must(cmd.MarkFlagFilename("endpoints-file", "json", "yaml"))
	cmd.AddCommand(newDemo(a))
	return cmd
}

func newDemo(a *app) *cobra.Command {
	o := sim.DemoOptions{Out: "out/demo.json"}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run one workload through Envoy, with eppctl and with round robin",
		Long: `Start four simulated engines, serve and a real Envoy, run one multi-turn workload
with the picker and with round robin, and print what each made of it.`,
		Example: `  eppctl sim demo --envoy /usr/local/bin/envoy --keep

  # half as many system prompts, which fit into one engine's cache
  eppctl sim demo --systems 8`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := positive(cmd, "systems"); err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("demo: %w", err)
			}
			o.Eppctl = self
			ctx, stop := a.interruptible(cmd.Context())
			defer stop()
			return sim.Demo(ctx, o, a.streams.Out, a.streams.Err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Envoy, "envoy", "", "the Envoy `BINARY` (default $ENVOY, then envoy on PATH)")
	f.BoolVar(&o.Keep, "keep", false, "leave everything running until Ctrl-C")
	f.IntVar(&o.Systems, "systems", sim.DemoSystems, "system prompts that the conversations share; an engine's cache holds eleven")
	f.StringVar(&o.Out, "out", o.Out, "write the measured rows to `FILE`")
	must(cmd.MarkFlagFilename("envoy"))
	must(cmd.MarkFlagFilename("out", "json"))
	return cmd
}
