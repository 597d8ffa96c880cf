package replay

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect/replay/fleet"
	"github.com/eppctl/eppctl/internal/inspect/replay/page"
	"github.com/eppctl/eppctl/internal/inspect/replay/recorded"
	"github.com/eppctl/eppctl/internal/inspect/replay/route"
	"github.com/eppctl/eppctl/internal/inspect/replay/workload"
	"github.com/eppctl/eppctl/internal/recorder"
)

// The policies that are not on route's list: the weights that decisions were recorded
// with, and these, or the preset pool, with some changed.
const (
	Recorded = "recorded"
	WhatIf   = "what-if"
)

// past is a recording of decisions that is played again.
type past struct {
	*recorded.Recording
	notes []string
	names []string // the alternatives, in the order of Changed
}

// policy is one of route's, or one of our own.
func (o *Options) policy(name string) (route.Policy, error) {
	switch {
	case name == Recorded && len(o.Decisions) > 0:
		return route.Weighted(name, "the weights that were recorded", o.base(), nil), nil
	case name == WhatIf && len(o.Weights) > 0:
		return route.Weighted(name, "the same with some changed", o.base(), o.Weights), nil
	case name == Recorded:
		return route.Policy{}, fmt.Errorf("policy %q: want --decisions, which tell the weights", name)
	case name == WhatIf:
		return route.Policy{}, fmt.Errorf("policy %q: want --weight, which says what is other", name)
	}
	return route.ByName(name)
}

// base is what WhatIf changes.
func (o *Options) base() *pick.Policy {
	if o.recorded != nil {
		return o.recorded
	}
	return pick.DefaultPolicy()
}

// decided reads a recording of decisions, and takes from it what is known of its
// fleet.
func (o *Options) decided(stdin io.Reader) (*workload.Workload, *past, error) {
	sources, err := sources(o.Decisions, stdin)
	if err != nil {
		return nil, nil, err
	}
	p := &past{}
	ask := recorded.Ask{Model: o.Model, Limit: o.Requests}
	for _, name := range o.Policies {
		if a, ok := o.alternative(name); ok {
			ask.Alternatives = append(ask.Alternatives, a)
			p.names = append(p.names, name)
		}
	}
	if p.Recording, err = recorded.Read(sources, ask); err != nil {
		return nil, nil, err
	}
	if o.recorded, err = recorded.PolicyOf(p.Fleet); err != nil {
		return nil, nil, err
	}
	p.notes = p.Notes()
	o.fit(p)
	w, misfits, err := p.Workload(func(size, prompt, output int) bool { return fleet.Fits(&o.Fleet.Profile, size, prompt, output) })
	if err != nil {
		return nil, nil, err
	}
	if misfits > 0 {
		p.notes = append(p.notes, fmt.Sprintf("%d requests are too long for a simulated pod, and are left out; see --kv-pool-tokens", misfits))
	}
	return w, p, nil
}

// alternative is a policy as recorded decisions can be asked about it: one of the
// product's. Rates are not compared: the simulated engines have their own.
func (o *Options) alternative(name string) (recorded.Alternative, bool) {
	a := recorded.Alternative{Name: name}
	switch name {
	case Recorded, WhatIf:
		var changes []pick.Weight
		if name == WhatIf {
			changes = o.Weights
		}
		a.Make = func(was *pick.Policy) (*pick.Policy, error) { return was.With(changes...) }
	case "pool", "fixed":
		a.Make = func(was *pick.Policy) (*pick.Policy, error) {
			pol, err := pick.Preset(name)
			if err == nil {
				pol.Calibration = was.Calibration
			}
			return pol, err
		}
	}
	return a, a.Make != nil && len(o.Fleet.Settings) == 0
}

// fit makes the simulated fleet as much like the recorded one as the file allows.
func (o *Options) fit(p *past) {
	c := &o.Fleet
	if o.AsRecorded.Pods {
		c.Pods = p.Pods
	}
	if o.AsRecorded.Scrape && p.Fleet.ScrapeMs > 0 {
		c.Scrape = float64(p.Fleet.ScrapeMs) / 1e3
	}
	if o.AsRecorded.Pool && p.PoolTokens > 0 {
		c.Profile.PoolTokens = p.PoolTokens
	}
	if !p.Adapters() {
		c.Profile.AdapterSlots = 0
	}
	if !o.AsRecorded.Pace {
		return
	}
	if pace, samples := p.Pace(&c.Profile); samples > 0 {
		c.Profile = c.Profile.Scaled(pace)
		p.notes = append(p.notes, fmt.Sprintf("engines take %.2f times as long as profile %s, fitted to %d prompts that met an empty pod; --pace 1 leaves the profile as it is", pace, c.Profile.Name, samples))
	} else {
		p.notes = append(p.notes, fmt.Sprintf("too few prompts met an empty pod and showed their first byte: engines are those of profile %s, whatever the recorded ones were", c.Profile.Name))
	}
}

// report adds what the recording tells to the results.
func (p *past) report(r *page.Report) {
	o := p.Observed()
	r.Observed, r.Notes = &o, p.notes
	for i := range r.Runs {
		x := &r.Runs[i]
		if k := slices.Index(p.names, x.Policy); k >= 0 && p.Changed[k].Of > 0 {
			c := p.Changed[k]
			x.Changed = &page.Changed{Decisions: c.Decisions, Of: c.Of}
		}
	}
}

// sources are the files of a recording, the one begun first in front: those of a
// rotation in their order.
func sources(args []string, stdin io.Reader) (list []recorded.Source, err error) {
	var paths []string
	for _, arg := range args {
		found := []string{arg}
		if _, err := os.Lstat(arg); err != nil && strings.ContainsAny(arg, "*?[") {
			if found, err = filepath.Glob(arg); err != nil || len(found) == 0 {
				return nil, fmt.Errorf("--decisions: found %q; no file fits it", arg)
			}
		}
		for _, path := range found { // a file that a pattern finds as well is no second day
			if path = filepath.Clean(path); !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	if len(paths) > 1 { // a pipe can be opened once
		slices.SortStableFunc(paths, func(a, b string) int { return recorder.Begun(a).Compare(recorder.Begun(b)) })
	}
	for _, path := range paths {
		s := recorded.Source{Name: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }}
		if path == "-" {
			s = recorded.Source{Name: "stdin", Open: func() (io.ReadCloser, error) { return io.NopCloser(stdin), nil }}
		}
		list = append(list, s)
	}
	return list, nil
}
