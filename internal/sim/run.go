package sim

import (
	"context"
	"fmt"
	"io"
	"os"
)

// RunOptions are those of `eppctl sim`.
type RunOptions struct {
	Fleet  FleetOptions
	Listen Listen // written into the config; zero values give serve's defaults
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
	set(&o.Listen.ExtProc, "127.0.0.1:9002")
	set(&o.Listen.Health, "127.0.0.1:9003")
	set(&o.Listen.Admin, "127.0.0.1:9004")
	set(&o.Listen.Metrics, "127.0.0.1:9090")
	text := f.Config(o.Listen)
	if o.Config == "" {
		fmt.Fprint(stdout, text)
	} else if err := os.WriteFile(o.Config, []byte(text), 0o644); err != nil {
		return fmt.Errorf("config: %w", err)
	} else {
		fmt.Fprintf(stdout, "# next: eppctl serve --config %s\n", o.Config)
	}
	<-ctx.Done()
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
