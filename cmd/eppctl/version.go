package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/core/event"
	"github.com/eppctl/eppctl/internal/core/recording"
	"github.com/eppctl/eppctl/internal/inspect/out"
	"github.com/eppctl/eppctl/internal/serve"
)

// Set by the linker in release builds.
var version, commit, date string

// identity names this binary.
type identity struct{ serve.Version }

// build names this binary: what the linker was told, else what Go recorded.
func build() identity {
	info, _ := debug.ReadBuildInfo()
	return identified(serve.Version{Version: version, Commit: commit, Date: date}, info)
}

// identified completes what is known by what Go recorded, which is nothing for a
// test binary.
func identified(v serve.Version, info *debug.BuildInfo) identity {
	v.Go, v.OS, v.Arch = runtime.Version(), runtime.GOOS, runtime.GOARCH
	if info != nil {
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
	return identity{v}
}

// line is what --version prints.
func (v identity) line() string {
	return fmt.Sprintf("eppctl %s %s/%s %s\n", v.Version.Version, v.OS, v.Arch, v.Go)
}

// protocol is what Envoy speaks with serve.
const protocol = "envoy.service.ext_proc.v3"

// adapters are the engines and what is read of each.
var adapters = []adapter{
	{"vllm", "KV events over ZeroMQ, metrics, /tokenize"},
	{"sglang", "KV events over ZeroMQ, metrics, /tokenize"},
	{"triton", "metrics"},
	{"trtllm", "KV events over ZeroMQ or pulled over HTTP, metrics"},
}

type adapter struct{ engine, reads string }

// wire names what this build can talk to.
type wire struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	serve.Version
	Engines  []string `json:"engines"`
	Protocol string   `json:"protocol"`
	// RecordingFormat is the version of .eptap files; Layouts are the forms of
	// events that are known by name.
	RecordingFormat int      `json:"recording_format"`
	Layouts         []string `json:"layouts"`
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
			return build().print(a.streams, format)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table, json, yaml")
	enum(cmd, "output", formats)
	return cmd
}

func (v identity) print(s *out.Streams, format string) error {
	if format == "table" {
		return v.table(s)
	}
	w := wire{APIVersion: serve.APIVersion, Kind: "Version", Version: v.Version, Protocol: protocol, RecordingFormat: recording.FormatVersion, Layouts: event.Layouts()}
	for _, x := range adapters {
		w.Engines = append(w.Engines, x.engine)
	}
	b, err := json.Marshal(w)
	if err == nil && format == "yaml" {
		b, err = out.YAML(b)
	} else {
		b = append(b, '\n')
	}
	if err != nil {
		return err
	}
	_, err = s.Out.Write(b)
	return err
}

func (v identity) table(s *out.Streams) error {
	if _, err := s.Out.Write([]byte(v.line())); err != nil {
		return err
	}
	known := func(text string) string {
		if text == "" {
			return "not recorded"
		}
		return text
	}
	t := &out.Table{Indent: "  ", Columns: make([]out.Column, 2)}
	rev := known(v.Commit)
	if v.Modified && !strings.Contains(rev, "dirty") {
		rev += ", with changes"
	}
	t.Add("commit", rev)
	t.Add("date", known(v.Date))
	t.Add("envoy", protocol)
	t.Add("recording", fmt.Sprintf("format %d", recording.FormatVersion))
	for _, x := range adapters {
		t.Add(x.engine, x.reads)
	}
	return t.Write(s.Out, s)
}
