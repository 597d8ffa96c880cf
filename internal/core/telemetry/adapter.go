package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/eppctl/eppctl/internal/core/pod"
)

// ParseOptions say how to read a page. The zero value reads the whole page of
// whatever engine is found on it.
type ParseOptions struct {
	Engine pod.Engine // what the configuration states; EngineUnknown = look
	// Model is the TensorRT-LLM model of a Triton page that carries several.
	Model string
	// Rank reads only the series of this data-parallel rank, named as the engine
	// prints it ("0"), where ranks are endpoints of their own on one page. ""
	// adds the queues of all ranks up and takes the greatest KV usage.
	Rank string
	Prev *Sample // the sample before, for differences of counters; may be nil
	At   int64   // ns, becomes Sample.At
}

// adapter knows the metric names of one engine.
type adapter interface {
	engine() pod.Engine
	stem() string    // the engine's names begin with it and a colon or underscore
	wants() []string // canonical names that read looks at
	read(p page, o *ParseOptions, s *Sample) error
}

// adapters are tried in this order when the page has names of several engines:
// Triton hosts the others and prints its own nv_ metrics beside theirs.
var adapters = []adapter{vllm{}, sglang{}, trtllm{}, triton{}}

const processStart = "process_start_time_seconds"

// engineNames is the union of what all adapters read.
var engineNames = func() names {
	n := names{}
	n.want(processStart)
	for _, a := range adapters {
		n.want(a.wants()...)
	}
	return n
}()

// ErrNoMetrics is returned for a page without any engine's metric names.
var ErrNoMetrics = errors.New("no known engine metrics on the page")

// Parse reads one complete metrics page, Prometheus text format 0.0.4. Fields
// the page does not tell are unknown in the Sample; an error means that the
// page must be taken as a failed scrape.
func Parse(text []byte, o ParseOptions) (*Sample, error) {
	a, err := choose(text, o.Engine)
	if err != nil {
		return nil, err
	}
	p, err := readPage(text, engineNames)
	if err != nil {
		return nil, err
	}
	s := &Sample{Engine: a.engine(), At: o.At, ProcessStart: p.first(processStart).max()}
	if err := a.read(p, &o, s); err != nil {
		return nil, err
	}
	s.KVUsage = s.share(s.KVUsage)
	for _, v := range s.values() {
		if !usable(v.V) { // a sum or product of absurd numbers
			*v = Value{}
		}
	}
	return s, nil
}

// share cuts a ratio at 1: engines overshoot while blocks change hands.
func (s *Sample) share(v Value) Value {
	if v.V > 1 {
		v.V = 1
		s.Clamped++
	}
	return v
}

// choose finds the adapter for a page: the configured one, which must have a
// name there, else the first in order that has.
func choose(text []byte, configured pod.Engine) (adapter, error) {
	best := len(adapters)
	for line := range bytes.Lines(text) {
		name, _, _ := lineName(line)
		name = bytes.TrimPrefix(name, []byte(ray))
		i := slices.IndexFunc(adapters, func(a adapter) bool { return owns(a, name) })
		if i < 0 {
			continue
		}
		if adapters[i].engine() == configured {
			return adapters[i], nil
		}
		if best = min(best, i); best == 0 && configured == pod.EngineUnknown {
			break // nothing stands before it
		}
	}
	switch {
	case best == len(adapters):
		return nil, ErrNoMetrics
	case configured != pod.EngineUnknown:
		return nil, fmt.Errorf("%w: configured %s, found %s", ErrNoMetrics, configured, adapters[best].engine())
	}
	return adapters[best], nil
}

// owns says whether a name, in any of its forms, is one of the adapter's engine.
func owns(a adapter, name []byte) bool {
	rest, ok := bytes.CutPrefix(name, []byte(a.stem()))
	return ok && len(rest) > 0 && (rest[0] == ':' || rest[0] == '_')
}
