package serve

import (
	"errors"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/eppctl/eppctl/internal/core/pick"
)

// weights is the section of that name: a preset and what differs from it.
type weights struct {
	Preset      string `yaml:"preset"`
	pick.Policy `yaml:",inline"`
}

// prepare loads the preset first, wherever in the section it stands, so that the
// other keys change it.
func (w *weights) prepare(d *decoder, m *ast.MappingNode, key string) {
	for _, kv := range m.Values {
		if kv.Key.GetToken().Value != "preset" {
			continue
		}
		n := d.plain(kv.Value)
		if _, ok := n.(ast.ScalarNode); !ok {
			return // structure reports it
		}
		p, err := pick.Preset(scalarText(n))
		if err != nil {
			names := []string{"pool", "fixed"}
			d.problem(n, join(key, "preset"), describe(n), "one of "+strings.Join(names, ", "), didYouMean(scalarText(n), names))
			return
		}
		w.Policy = *p
	}
}

// policy checks the constants and adds those of single models.
func (d *decoder) policy(w *weights, models Models) *pick.Policy {
	p := &w.Policy
	p.Models = make(map[string]pick.Calibration, len(models))
	for i := range models {
		if m := &models[i]; m.Name != "" {
			p.Models[m.Name] = m.calibration(p.Calibration)
		}
	}
	var bad *pick.KeyError
	if err := p.Validate(); errors.As(err, &bad) {
		key := "weights." + bad.Key
		for i := range models {
			if rest, ok := strings.CutPrefix(bad.Key, "models."+models[i].Name+"."); ok {
				key = "models[" + strconv.Itoa(i) + "]." + rest
			}
		}
		d.bad(key, found(bad.Value), bad.Want, "")
	} else if err != nil {
		d.bad("weights", err.Error(), "", "")
	}
	return p
}

// calibration is the model's own numbers over those of all models.
func (m *Model) calibration(base pick.Calibration) pick.Calibration {
	c := base
	for _, x := range []struct {
		to  *float64
		own float64
	}{
		{&c.TokensPerSecond, m.PrefillTokensPerSecond},
		{&c.Constant, m.PrefillConstant},
		{&c.Quadratic, m.PrefillQuadratic},
		{&c.BytesPerToken, float64(m.KVBytesPerToken)},
		{&c.PoolTokens, float64(m.KVPoolTokens)},
	} {
		if x.own != 0 {
			*x.to = x.own
		}
	}
	return c
}
