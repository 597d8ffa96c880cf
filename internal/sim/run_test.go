package sim

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// Whether printed or written, the config is one file of YAML that names the
// hosts file, and the commands that fit it stand at its top.
func TestRunConfig(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	here, err := os.Getwd() // what serve and Envoy will call it
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct{ name, config, hosts, wantHosts, wantServe string }{
		{"printed", "", "", filepath.Join(here, "endpoints.json"), "--config FILE"},
		{"written", "sub/eppctl.yaml", "", filepath.Join(here, "sub", "endpoints.json"), "--config sub/eppctl.yaml"},
		{"named", "it's.yaml", "/run/x/eds.json", "/run/x/eds.json", `--config 'it'\''s.yaml'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.MkdirAll("sub", 0o755); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			o := RunOptions{Fleet: FleetOptions{Engines: 1, Engine: EngineOptions{Model: "sim"}}, Config: c.config, Listen: Listen{EndpointsFile: c.hosts}}
			if err := Run(ended, o, &out); err != nil {
				t.Fatal(err)
			}
			text := out.Bytes()
			if c.config != "" {
				if text, err = os.ReadFile(c.config); err != nil {
					t.Fatal(err)
				}
			}
			var got struct {
				Pods  []struct{ Address string }
				Envoy struct {
					EndpointsFile string `yaml:"endpoints_file"`
				}
			}
			if err := yaml.Unmarshal(text, &got); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if len(got.Pods) != 1 || got.Envoy.EndpointsFile != c.wantHosts {
				t.Errorf("%+v, want the hosts file %s", got, c.wantHosts)
			}
			for _, want := range []string{
				"\n#   eppctl serve " + c.wantServe + "\n",
				"\n#   eppctl envoy-config --listen 127.0.0.1:10080 --epp 127.0.0.1:9002 --epp-health 9003 --endpoints-file " + c.wantHosts + " > envoy.yaml\n",
				"\n#   curl -i http://127.0.0.1:10080/v1/completions -H 'content-type: application/json' " +
					`-d '{"max_tokens":8,"model":"sim","prompt":"Once upon a time"}'` + "\n",
			} {
				if !strings.Contains(out.String(), want) || !bytes.Contains(text, []byte(strings.TrimPrefix(want, "\n"))) {
					t.Errorf("no %q in\n%s", want, &out)
				}
			}
		})
	}
}
