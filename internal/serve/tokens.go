package serve

import (
	"net/http"
	"time"

	"github.com/eppctl/eppctl/internal/core/feed"
	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/prompt"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// tokens builds the chains of providers that find a prompt's token ids. The
// engines' own /tokenize is the only provider yet.
type tokens struct {
	client  *feed.TokenizeClient
	timeout time.Duration
	met     *metrics
}

// newTokens asks the endpoints that rules names at the time of each prompt.
func newTokens(c *http.Client, set func() *pod.Set, rules func() *rules, timeout time.Duration, met *metrics) *tokens {
	endpoints := func(base string) []feed.TokenizeEndpoint {
		if m := rules().models.Get(base); m != nil && len(m.Tokenize.URLs) > 0 {
			return configured(m.Tokenize.URLs)
		}
		return ofPods(set(), base)
	}
	return &tokens{client: feed.NewTokenizeClient(c, endpoints), timeout: timeout, met: met}
}

func configured(urls []string) []feed.TokenizeEndpoint {
	list := make([]feed.TokenizeEndpoint, len(urls))
	for i, u := range urls {
		list[i].URL = u
	}
	return list
}

// ofPods names the engines that serve a model. Without a model any engine's ids
// would be a guess, unless all pods serve the same one.
func ofPods(set *pod.Set, base string) (list []feed.TokenizeEndpoint) {
	for _, p := range set.Pods {
		switch {
		case p.Target == "" || p.Draining:
		case base == "" && p.Spec.Model != set.Pods[0].Spec.Model:
			return nil
		case base != "" && p.Spec.Model != "" && p.Spec.Model != base:
		default:
			list = append(list, feed.TokenizeEndpoint{URL: "http://" + p.Target, Engine: p.Spec.Engine})
		}
	}
	return list
}

// chain is the one of a model; the zero Model stands for those not configured.
func (t *tokens) chain(m *Model) *prompt.Chain {
	timeout := t.timeout
	if m.Tokenize.Timeout > 0 {
		timeout = m.Tokenize.Timeout
	}
	return &prompt.Chain{
		Links: []prompt.Link{{Provider: t.client, Deadline: timeout}},
		Fallback: func(provider string, why reason.Code, _ error) {
			t.met.untokenized.WithLabelValues(provider, string(why)).Inc()
		},
	}
}
