package route

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/eppctl/eppctl/internal/core/pick"
	"github.com/eppctl/eppctl/internal/inspect/replay/engine"
)

// Settings are constants of the product's decision over those of its preset, as the
// section weights of eppctl.yaml writes them: "alpha", "breaker.depth".
type Settings []Setting

// Setting is one constant.
type Setting struct{ Key, Value string }

// ParseSetting reads KEY=VALUE or TERM=VALUE, as what-ifs have them.
func ParseSetting(text string) (Setting, error) {
	w, err := pick.ParseWeight(text)
	if err != nil {
		return Setting{}, err
	}
	_, value, _ := strings.Cut(text, "=")
	return Setting{w.Key, value}, nil
}

// policy is a preset, calibrated to the engines' profile, with the settings over it.
func (s Settings) policy(preset string, p *engine.Profile) (*pick.Policy, error) {
	pol, err := pick.Preset(preset)
	if err != nil {
		return nil, err
	}
	return s.over(pol, p)
}

// over changes a policy of the caller's in the same way.
func (s Settings) over(pol *pick.Policy, p *engine.Profile) (*pick.Policy, error) {
	pol.TokensPerSecond, pol.Quadratic, pol.BytesPerToken = 1/p.PerToken, p.Quadratic, p.BytesPerToken
	if p.HostBandwidth > 0 {
		pol.Tiers.Host = pick.Link{Bandwidth: p.HostBandwidth, Latency: p.HostLatency}
	}
	for _, x := range s {
		if err := yaml.UnmarshalWithOptions([]byte(x.yaml()), pol, yaml.Strict()); err != nil {
			return nil, fmt.Errorf("weights: %s=%s: %s", x.Key, x.Value, firstLine(err))
		}
	}
	if err := pol.Validate(); err != nil {
		return nil, err
	}
	return pol, nil
}

// yaml nests "breaker.depth=16".
func (x Setting) yaml() string {
	text := x.Value
	parts := strings.Split(x.Key, ".")
	for i := len(parts) - 1; i >= 0; i-- {
		text = fmt.Sprintf("{%q: %s}", parts[i], text)
	}
	return text
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
