package workload

import (
	"fmt"
	"maps"
	"math"
	"math/rand"
	"slices"
	"strconv"
	"strings"

	"github.com/eppctl/eppctl/internal/core/spelling"
)

// Parameters set a generator up. What a generator does not name keeps its default.
type Parameters map[string]float64

// generator makes a workload from a seed. Its parameters carry their defaults.
type generator struct {
	name     string
	about    string
	defaults Parameters
	make     func(p Parameters, rnd *rand.Rand) *Workload
}

// generatedBlock is the block size of generated prompts: that of the Mooncake
// traces, with which they are compared.
const generatedBlock = 512

// generatorSeed is added to a seed: with seed 1 the sources are those that the
// published figures were made with.
const generatorSeed = 41

var generators = []generator{toolLike, hotPrompt, burst, agentSessions, sharedPrefix, multiTurn}

// Generators lists the names.
func Generators() []string {
	var names []string
	for _, g := range generators {
		names = append(names, g.name)
	}
	return names
}

// About says what a generator makes, and its parameters with their defaults.
func About(name string) string {
	for _, g := range generators {
		if g.name == name {
			return g.about + ": " + g.defaults.String()
		}
	}
	return ""
}

func (p Parameters) String() string {
	var parts []string
	for k, v := range p {
		parts = append(parts, k+"="+strconv.FormatFloat(v, 'g', -1, 64))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// maxParameter bounds what a parameter may be; what it leads to is bounded by the
// caps of workloads.
const maxParameter = 1e9

// Generate makes the requests of a generator. Equal seeds and parameters give equal
// requests.
func Generate(name string, seed uint64, set Parameters) (*Workload, error) {
	i := slices.IndexFunc(generators, func(g generator) bool { return g.name == name })
	if i < 0 {
		return nil, fmt.Errorf("workload %q: want one of %s", name, strings.Join(Generators(), ", "))
	}
	g := &generators[i]
	p := Parameters{}
	for k, v := range g.defaults {
		p[k] = v
	}
	for k, v := range set {
		if _, ok := p[k]; !ok {
			hint := spelling.Guess(k, slices.Sorted(maps.Keys(g.defaults)))
			if hint == "" {
				hint = "it has " + g.defaults.String()
			}
			return nil, fmt.Errorf("workload %s has no parameter %q; %s", name, k, hint)
		}
		if !(v >= 0 && v <= maxParameter) {
			return nil, fmt.Errorf("workload %s: %s=%v: want a number from 0 to %g", name, k, v, float64(maxParameter))
		}
		p[k] = v
	}
	if err := p.bounded(); err != nil {
		return nil, fmt.Errorf("workload %s: %w", name, err)
	}
	w := g.make(p, rand.New(rand.NewSource(int64(generatorSeed+seed))))
	w.Name, w.BlockSize, w.Requests = name, generatedBlock, sorted(w.Requests)
	if len(w.Requests) == 0 {
		return nil, fmt.Errorf("workload %s: these parameters make no request: %s", name, p)
	}
	if last := w.Requests[len(w.Requests)-1].At; !(last <= MaxSeconds) {
		return nil, fmt.Errorf("workload %s: these parameters make requests of more than ten years: %s", name, p)
	}
	return w, nil
}

// limits of parameters by name: lengths are prompts', counts are requests'.
var parameterLimits = map[string]float64{
	"requests": 1e6, "num_groups": 1e5, "num_prompts_per_group": 1e5, "prompts": 1e5, "groups": 1e5, "questions": 1e4,
	"system_prompts": 1e4, "seconds": 1e5, "turns_max": 1e3, "turns_min": 1e3, "zipf": 20,
}

func (p Parameters) bounded() error {
	for k, v := range p {
		limit, known := parameterLimits[k]
		switch {
		case strings.HasSuffix(k, "_len") || strings.HasSuffix(k, "_tokens"):
			limit = 1 << 18
		case strings.HasPrefix(k, "rate"):
			limit = 1e4
		case !known:
			continue
		}
		if v > limit {
			return fmt.Errorf("%s=%g: want at most %g", k, v, limit)
		}
	}
	for _, k := range []string{"rate", "rate_from", "rate_to"} {
		if v, ok := p[k]; ok && v <= 0 {
			return fmt.Errorf("%s=%g: want a number above 0", k, v)
		}
	}
	if least, most := p["turns_min"], p["turns_max"]; least > most {
		return fmt.Errorf("turns_min=%g: want at most turns_max=%g", least, most)
	}
	if n := p["num_groups"] * p["num_prompts_per_group"] * max(1, p["num_turns"]); n > 1e6 {
		return fmt.Errorf("%g requests: want at most 1000000", n)
	}
	if p["rate_from"]+p["rate_to"] > 0 && (p["rate_from"]+p["rate_to"])/2*p["seconds"] > 1e6 {
		return fmt.Errorf("%g requests: want at most 1000000", (p["rate_from"]+p["rate_to"])/2*p["seconds"])
	}
	return nil
}

func (p Parameters) int(name string) int { return int(p[name]) }

// lognormal is e^(ln median + sigma·N) as a whole number.
func lognormal(rnd *rand.Rand, median, sigma float64) int {
	return int(math.Exp(math.Log(median) + sigma*rnd.NormFloat64()))
}
