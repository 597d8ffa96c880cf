package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/eppctl/eppctl/internal/serve"
	"github.com/eppctl/eppctl/internal/testdata"
)

// TestConfigSchema: the committed schema is that of the type, and what is printed
// follows it.
func TestConfigSchema(t *testing.T) {
	words := map[string][]string{"printed.APIVersion": {serve.APIVersion}, "printed.Kind": {"Config"}, "Origin.Kind": serve.OriginKinds()}
	testdata.Golden(t, "../../docs/schema/config.json", testdata.Schema(t, "eppctl serve --print-config -o json", printed{}, words))
	file := filepath.Join(t.TempDir(), "eppctl.yaml")
	if err := os.WriteFile(file, []byte("pods: [{address: 'h:1', events: 5557}]\nweights: {preset: fixed}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, text, errs := try(nil, map[string]string{"EPPCTL_METRICS_ADDR": ":7"}, "serve", "--config", file, "--fallbacks", "1", "--print-config", "-o", "json")
	if code != exitOK || errs != "" {
		t.Fatalf("code %d, stderr %q", code, errs)
	}
	testdata.Valid(t, "config.json", []byte(text))
}
