package route

import (
	"fmt"
	"slices"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/core/spelling"
)

// Policy is one way to route.
type Policy struct {
	Name  string
	About string
	// Kind is "product", "published", "baseline" or "omniscient".
	Kind string
	make func(*Fleet) (Router, error)
}

// The kinds of policies.
const (
	Product    = "product"
	Published  = "published"
	Baseline   = "baseline"
	Omniscient = "omniscient"
)

func byRule(kind, name, about string, speculate bool, x func(*Fleet) rule) Policy {
	return Policy{name, about, kind, func(f *Fleet) (Router, error) { return newPeer(f, x(f), speculate), nil }}
}

func fixedRule(x rule) func(*Fleet) rule { return func(*Fleet) rule { return x } }

func preset(name, about string) Policy {
	return Policy{name, about, Product, func(f *Fleet) (Router, error) {
		pol, err := f.Settings.policy(name, &f.Profile)
		if err != nil {
			return nil, err
		}
		return newProduct(f, pol), nil
	}}
}

// Weighted is the product under a policy with some constants changed. Its rates are
// those of the engines that are simulated, unless they are what is changed.
func Weighted(name, about string, base *pick.Policy, changes []pick.Weight) Policy {
	return Policy{name, about, Product, func(f *Fleet) (Router, error) {
		own := *base
		pol, err := f.Settings.over(&own, &f.Profile)
		if err != nil {
			return nil, err
		}
		if pol, err = pol.With(changes...); err != nil {
			return nil, err
		}
		return newProduct(f, pol), nil
	}}
}

// policies is the one list of them, in the order of tables.
var policies = []Policy{
	preset("pool", "eppctl, preset pool: its own index, ledger and decision"),
	preset("fixed", "eppctl, preset fixed: the same with constant weights"),

	byRule(Published, "lmetric", "Dynamo's lmetric: adjusted prefill blocks times decode blocks; own accounting, events and speculation", true, fixedRule(dynamo{lmetric: true})),
	byRule(Published, "min-ttft", "Mooncake's algorithm 1: least queue and own prefill; own accounting, events and speculation", true, fixedRule(minTTFT{})),
	byRule(Published, "llmd-sticky", "llm-d since 2026-08: pods with 0.8 of the prompt unless 18 s longer; own accounting, events and speculation", true, fixedRule(llmdSticky{})),
	byRule(Published, "llmd-blend", "llm-d's weights 1/1/2 with own queue counts and speculation, which it does not have by default", true, fixedRule(llmdBlend{1, 1, 2, true})),
	byRule(Published, "llmd-scraped", "llm-d's weights 1/1/2 as published: scraped queue, events", false, fixedRule(llmdBlend{1, 1, 2, false})),
	byRule(Published, "dynamo", "Dynamo: prefill blocks plus decode blocks; own accounting and events", false, fixedRule(dynamo{})),
	byRule(Published, "aibrix", "AIBrix prefix-cache: longest match among pods near the mean load; events", false, fixedRule(aibrix{})),
	byRule(Published, "sglang", "SGLang gateway cache-aware: longest match in its own history, else the smallest tree", false, func(f *Fleet) rule {
		x := &sglang{}
		for range f.Pods {
			x.trees = append(x.trees, newHistory(f.Profile.Blocks(f.BlockSize)))
		}
		return x
	}),

	byRule(Baseline, "least-in-flight", "the pod with the fewest requests of ours", false, fixedRule(leastInFlight{})),
	byRule(Baseline, "prefix-hash", "rendezvous hashing over the first two blocks", false, fixedRule(prefixHash{})),
	byRule(Baseline, "random", "any pod", false, fixedRule(random{})),
	byRule(Baseline, "round-robin", "one pod after the other", false, func(*Fleet) rule { return &roundRobin{} }),

	byRule(Omniscient, "omniscient", "the engines' true state without delay, own first token soonest", false, func(f *Fleet) rule { return newOmniscient(f, 1) }),
	byRule(Omniscient, "omniscient-4", "the same, its own prefill counted four times", false, func(f *Fleet) rule { return newOmniscient(f, 4) }),
}

// Policies lists them.
func Policies() []Policy { return slices.Clone(policies) }

// Names lists the names.
func Names() []string {
	var names []string
	for _, p := range policies {
		names = append(names, p.Name)
	}
	return names
}

// ByName returns a policy.
func ByName(name string) (Policy, error) {
	i := slices.IndexFunc(policies, func(p Policy) bool { return p.Name == name })
	if i < 0 {
		return Policy{}, fmt.Errorf("no policy is called %q; %s", name, spelling.Among(name, Names()))
	}
	return policies[i], nil
}

// Make returns one replica of the policy.
func (p *Policy) Make(f *Fleet) (Router, error) { return p.make(f) }
