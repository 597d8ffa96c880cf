package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/serve"
)

// Set by the linker in release builds.
var version, commit, date string

// build names this binary: what the linker was told, else what Go recorded.
func build() serve.Version {
	v := serve.Version{Version: version, Commit: commit, Date: date, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v.Version == "" {
			v.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision" && v.Commit == "":
				v.Commit = s.Value
			case s.Key == "vcs.time" && v.Date == "":
				v.Date = s.Value
			case s.Key == "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	return v
}

// wire names what this build can talk to.
type wire struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	serve.Version
	Engines  []string `json:"engines"`
	Protocol string   `json:"protocol"`
}

func newVersion(a *app) *cobra.Command {
	var format string
	formats := []string{"table", "json", "yaml"}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Print the version, and the protocols and engines it speaks.",
		Example: `  eppctl version
  eppctl version -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf(cmd, "output", formats); err != nil {
				return err
			}
			v := wire{
				APIVersion: "eppctl/v1", Kind: "Version", Version: build(),
				Engines: []string{"vllm", "sglang", "triton", "trtllm"}, Protocol: "envoy.service.ext_proc.v3",
			}
			b, err := json.Marshal(v)
			if err != nil {
				return err
			}
			switch format {
			case "json":
				b = append(b, '\n')
			case "yaml":
				if b, err = yaml.JSONToYAML(b); err != nil {
					return err
				}
			default:
				b = fmt.Appendf(nil, "eppctl %s %s/%s %s\n", v.Version.Version, v.OS, v.Arch, v.Go)
			}
			_, err = a.streams.Out.Write(b)
			return err
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table, json, yaml")
	enum(cmd, "output", formats)
	return cmd
}
