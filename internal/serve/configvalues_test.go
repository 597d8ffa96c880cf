package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// valuesOf loads a file of that text and returns its values by key.
func valuesOf(t *testing.T, text string, with ...Override) map[string]Value {
	t.Helper()
	path := filepath.Join(t.TempDir(), "eppctl.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(path, with...)
	if err != nil {
		t.Fatal(err)
	}
	byKey := map[string]Value{}
	for _, v := range c.Values() {
		if _, twice := byKey[v.Key]; twice {
			t.Errorf("%s stands there twice", v.Key)
		}
		v.From.File = strings.Replace(v.From.File, path, "FILE", 1)
		byKey[v.Key] = v
	}
	return byKey
}

func TestValuesNameTheirOrigin(t *testing.T) {
	got := valuesOf(t, `listen: {ext_proc: ':1', health: ':2', metrics: ':3'}
weights:
  preset: fixed
  alpha: 2
pods:
- {address: 'h:1', events: 5557, ranks: 2}
models: [{name: m, aliases: [a,

b]}]
`,
		Override{Key: "listen.health", From: "--health-addr", Set: func(c *Config) { c.Listen.Health = ":8" }},
		Override{Key: "listen.metrics", From: "EPPCTL_METRICS_ADDR", Set: func(c *Config) { c.Listen.Metrics = ":9" }},
	)
	for key, want := range map[string]Value{
		"listen.ext_proc":         {Value: ":1", From: Origin{Kind: FromFile, File: "FILE", Line: 1}},
		"listen.health":           {Value: ":8", From: Origin{Kind: FromFlag, Name: "--health-addr"}},
		"listen.metrics":          {Value: ":9", From: Origin{Kind: FromEnvironment, Name: "EPPCTL_METRICS_ADDR"}},
		"listen.admin":            {Value: "127.0.0.1:9004", From: Origin{Kind: FromDefault}},
		"weights.preset":          {Value: "fixed", From: Origin{Kind: FromFile, File: "FILE", Line: 3}},
		"weights.alpha":           {Value: 2.0, From: Origin{Kind: FromFile, File: "FILE", Line: 4}},
		"weights.beta":            {Value: 0.02, From: Origin{Kind: FromPreset, Name: "fixed"}},
		"limits.frame_bytes":      {Value: "16MiB", From: Origin{Kind: FromDefault}},
		"scrape.interval":         {Value: "250ms", From: Origin{Kind: FromDefault}},
		"pods[0].name":            {Value: "h:1", From: Origin{Kind: FromDefault}},
		"pods[0].events[1]":       {Value: "tcp://h:5558", From: Origin{Kind: FromFile, File: "FILE", Line: 6}},
		"models[0].aliases[1]":    {Value: "b", From: Origin{Kind: FromFile, File: "FILE", Line: 9}},
		"scrape.device_exporters": {Value: nil, From: Origin{Kind: FromDefault}},
		"decisions.keep":          {Value: 4, From: Origin{Kind: FromDefault}},
		"weights.learn.on":        {Value: true, From: Origin{Kind: FromPreset, Name: "fixed"}},
		"envoy.cluster":           {Value: "pool", From: Origin{Kind: FromDefault}},
		"strict_models":           {Value: false, From: Origin{Kind: FromDefault}},
		"limits.index_bytes":      {Value: "0B", From: Origin{Kind: FromDefault}},
		"limits.recent_cards":     {Value: 4096, From: Origin{Kind: FromDefault}},
	} {
		want.Key = key
		if !reflect.DeepEqual(got[key], want) {
			t.Errorf("%s: %+v, want %+v", key, got[key], want)
		}
	}
	if v, ok := got["pods[0].model"]; ok {
		t.Errorf("a pod has what nobody told of it: %+v", v)
	}
}

// TestValuesAreComplete: no key of the file is left out.
func TestValuesAreComplete(t *testing.T) {
	got := valuesOf(t, "pods: [{address: 'h:1'}]\n")
	keys := configKeys()
	for _, key := range keys {
		section := slices.ContainsFunc(keys, func(k string) bool {
			return strings.HasPrefix(k, key+".") || strings.HasPrefix(k, key+"[")
		})
		if strings.Contains(key, "[]") || section {
			continue
		}
		if _, ok := got[key]; !ok {
			t.Errorf("%s is missing", key)
		}
	}
}

func TestValuesMaskSecrets(t *testing.T) {
	got := valuesOf(t, "pods: [{address: 'h:1', metrics: 'http://u:s3cret@h:1/m'}]\nscrape: {device_exporters: ['http://u:s3cret@h:9400/metrics']}\n")
	for key, v := range got {
		if strings.Contains(fmt.Sprint(v.Value), "s3cret") {
			t.Errorf("%s shows a password", key)
		}
	}
}
