package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eppctl/eppctl/internal/inspect"
	"github.com/eppctl/eppctl/internal/serve"
)

// configFlag adds --config to a command.
func configFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "config", "", "configuration `FILE` (default $XDG_CONFIG_HOME/eppctl/config.yaml, then /etc/eppctl/config.yaml)")
	must(cmd.MarkFlagFilename("config", "yaml", "yml"))
}

// findConfig returns the file to use: the given one, or the first that exists.
func (a *app) findConfig(given string) (string, error) {
	if given == "" {
		given = a.getenv("EPPCTL_CONFIG") // for commands without --config: their completions read the file
	}
	if given != "" {
		return given, nil
	}
	places := a.configPlaces()
	for _, p := range places {
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
	}
	return "", &inspect.Error{
		Kind: inspect.Usage, Code: "E_CONFIG", What: "no configuration file",
		Why: "looked at " + strings.Join(places, " and "), Hint: "try: --config eppctl.yaml (its keys: docs/config.md)",
	}
}

func (a *app) configPlaces() []string {
	var places []string
	dir := a.getenv("XDG_CONFIG_HOME")
	if home := a.getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
	}
	if dir != "" {
		places = append(places, filepath.Join(dir, "eppctl", "config.yaml"))
	}
	return append(places, "/etc/eppctl/config.yaml")
}

// loadConfig finds and reads the file.
func (a *app) loadConfig(given string, with ...serve.Override) (*serve.Config, error) {
	path, err := a.findConfig(given)
	if err != nil {
		return nil, err
	}
	return serve.LoadConfig(path, with...)
}
