package sim

import (
	"errors"
	"fmt"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// FleetOptions describe a fleet of equal engines.
type FleetOptions struct {
	Engines int
	Engine  EngineOptions // of each; Name and ports are filled in
	// Each, when set, changes the options of engine i before it starts.
	Each func(i int, o *EngineOptions)
	// IPv6 puts every other engine on [::1]; Mixed makes every other one SGLang.
	IPv6, Mixed bool
}

// Fleet is a set of running engines.
type Fleet struct {
	Engines []*Engine
}

// StartFleet starts all engines or none.
func StartFleet(o FleetOptions) (*Fleet, error) {
	f := &Fleet{}
	for i := range o.Engines {
		eo := o.Engine
		eo.Name = fmt.Sprintf("sim-%d", i)
		if odd := i%2 == 1; odd && o.IPv6 {
			eo.Addr = "[::1]:0"
		} else if odd && o.Mixed {
			eo.Kind = pod.EngineSGLang
		}
		if o.Each != nil {
			o.Each(i, &eo)
		}
		e, err := Start(eo)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		f.Engines = append(f.Engines, e)
	}
	return f, nil
}

// Close stops every engine.
func (f *Fleet) Close() error {
	var errs []error
	for _, e := range f.Engines {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}

// ByName returns the engine of this name, or nil.
func (f *Fleet) ByName(name string) *Engine {
	for _, e := range f.Engines {
		if e.Name() == name {
			return e
		}
	}
	return nil
}
