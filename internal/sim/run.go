package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// RunOptions are those of `eppctl sim`.
type RunOptions struct {
	Fleet  FleetOptions
	Listen Listen // written into the config; zero values give serve's defaults on loopback
	Config string // path to write the config to, "" = print it
}

// Run starts a fleet, prints where it is and a config for `eppctl serve`, and
// keeps it running until ctx ends.
func Run(ctx context.Context, o RunOptions, stdout io.Writer) error {
	f, err := StartFleet(o.Fleet)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, e := range f.Engines {
		fmt.Fprintf(stdout, "# %s  %s  %s  model %s  events %s  replay %s\n", e.Name(), e.opt.Kind, e.URL(), e.opt.Model,
			orNone(e.EventsEndpoint()), orNone(e.ReplayEndpoint()))
	}
	if err := o.complete(); err != nil {
		return err
	}
	text := o.next() + f.Config(o.Listen)
	if o.Config == "" {
		fmt.Fprint(stdout, text)
	} else if err := os.WriteFile(o.Config, []byte(text), 0o644); err != nil {
		return fmt.Errorf("config: %w", err)
	} else {
		fmt.Fprint(stdout, o.next())
	}
	<-ctx.Done()
	return nil
}

// complete fills in what was left open. The hosts file is beside the config,
// where whoever runs the fleet may write, and absolute: serve and Envoy need not
// run in the same folder.
func (o *RunOptions) complete() (err error) {
	set(&o.Listen.ExtProc, "127.0.0.1:9002")
	set(&o.Listen.Health, "127.0.0.1:9003")
	set(&o.Listen.Admin, "127.0.0.1:9004")
	set(&o.Listen.Metrics, "127.0.0.1:9090")
	set(&o.Listen.EndpointsFile, filepath.Join(filepath.Dir(o.Config), "endpoints.json"))
	if o.Listen.EndpointsFile, err = filepath.Abs(o.Listen.EndpointsFile); err != nil {
		return fmt.Errorf("endpoints file: %w", err)
	}
	return nil
}

// proxy is where the Envoy of these commands listens.
const proxy = "127.0.0.1:10080"

// next are the commands that fit the config, as comments. Each but the last keeps
// its terminal.
func (o *RunOptions) next() string {
	body, _ := json.Marshal(map[string]any{"model": o.Fleet.Engine.Model, "prompt": "Once upon a time", "max_tokens": 8}) // strings and a number
	return fmt.Sprintf("# next, in this order:\n#   eppctl serve --config %s\n"+
		"#   eppctl envoy-config --listen %s --epp %s --epp-health %s --endpoints-file %s > envoy.yaml\n#   envoy -c envoy.yaml\n"+
		"#   curl -i http://%s/v1/completions -H 'content-type: application/json' -d %s\n",
		quoted(cmp.Or(o.Config, "FILE")), proxy, o.Listen.ExtProc, port(o.Listen.Health), quoted(o.Listen.EndpointsFile), proxy, quoted(string(body)))
}

// quoted is a path as one word for a shell.
func quoted(path string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@%", r)
	}
	if strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
