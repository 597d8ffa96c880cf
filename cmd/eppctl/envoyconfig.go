package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/serve"
)

func newEnvoyConfig(a *app) *cobra.Command {
	o := serve.DefaultBootstrap()
	variant, body, response := string(o.Variant), string(o.Body), string(o.ResponseBody)
	requestBytes := serve.Bytes(o.RequestBytes)
	cmd := &cobra.Command{
		Use:   "envoy-config",
		Short: "Print an Envoy bootstrap that asks serve",
		Long: `Print an Envoy bootstrap that asks "eppctl serve" for every request.

The default keeps the pool's hosts in a file that serve maintains, so that Envoy can
retry on another host and go on when serve is away. The original-dst variants need
no host list, but a dead pod or a dead serve then fails the request.`,
		Example: `  # the default, for a serve whose envoy.endpoints_file is the default's
  eppctl envoy-config --endpoints-file /var/lib/eppctl/endpoints.json > envoy.yaml
  envoy -c envoy.yaml

  # with a log line per request that shows the pick and its id
  eppctl envoy-config --access-log /dev/stdout > envoy.yaml

  # clients read the alias that they asked for, and engine_tokens_total counts
  eppctl envoy-config --response-body full-duplex

  # no host list, bodies pass through the picker
  eppctl envoy-config --variant original-dst --body full-duplex`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf(cmd, "variant", texts(serve.Variants())); err != nil {
				return err
			}
			if err := oneOf(cmd, "body", texts(serve.Bodies())); err != nil {
				return err
			}
			if err := oneOf(cmd, "response-body", texts(serve.ResponseBodies())); err != nil {
				return err
			}
			o.Variant, o.Body, o.ResponseBody = serve.Variant(variant), serve.Body(body), serve.ResponseBody(response)
			o.RequestBytes = int(requestBytes)
			text, err := serve.Bootstrap(o)
			if err != nil {
				return misuse(cmd, errors.New(errText(err)))
			}
			_, err = a.streams.Out.Write(text)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&variant, "variant", variant, "how Envoy learns the pick: override-host, original-dst, original-dst-header")
	f.StringVar(&body, "body", body, "how Envoy hands over bodies: buffered, full-duplex")
	f.StringVar(&response, "response-body", response, "whether serve sees responses: none, streamed (it reads the engine's usage), full-duplex (it also puts back the model name that the client used)")
	f.StringVar(&o.Listen, "listen", o.Listen, "`ADDR` for clients")
	f.StringVar(&o.Admin, "admin", o.Admin, "`ADDR` of Envoy's admin page, empty = none")
	f.StringVar(&o.EPP, "epp", o.EPP, "`ADDR` of serve's ext_proc")
	f.IntVar(&o.EPPHealth, "epp-health", o.EPPHealth, "`PORT` of serve's gRPC health, 0 = that of --epp")
	f.StringVar(&o.EndpointsFile, "endpoints-file", o.EndpointsFile, "EDS `FILE` that serve keeps")
	f.StringVar(&o.Cluster, "cluster", o.Cluster, "`NAME` of the pool's cluster")
	f.IntVar(&o.Fallbacks, "fallbacks", o.Fallbacks, "serve's --fallbacks")
	f.StringVar(&o.EngineHealth, "engine-health", o.EngineHealth, "`PATH` that Envoy probes on each pod, empty = none")
	f.StringVar(&o.Baseline, "baseline", o.Baseline, "`ADDR` of a second listener, round robin without the picker")
	f.StringVar(&o.AccessLog, "access-log", "", "`FILE` of an access log with the pick in each line, such as /dev/stdout; empty = none")
	f.Var(&requestBytes, "request-bytes", "largest body Envoy keeps, a `SIZE`; limits.request_bytes of serve")
	enum(cmd, "variant", texts(serve.Variants()))
	enum(cmd, "body", texts(serve.Bodies()))
	enum(cmd, "response-body", texts(serve.ResponseBodies()))
	must(cmd.MarkFlagFilename("endpoints-file", "json", "yaml"))
	return cmd
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = string(x)
	}
	return out
}

// errText is the innermost text: the command's name says the rest.
func errText(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		return inner.Error()
	}
	return err.Error()
}
