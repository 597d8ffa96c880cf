package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/eppctl/eppctl/internal/sim/freeport"
)

// StackOptions describe a fleet with a picker and an Envoy in front of it.
type StackOptions struct {
	Eppctl, Envoy string   // the binaries
	Dir           string   // for configs and logs
	EnvoyConfig   []string // further flags of `eppctl envoy-config`
	Serve         []string // further flags of `eppctl serve`
	Baseline      bool     // a second listener, round robin without the picker
	Weights       string   // the section of that name, in braces; "" = the defaults
	Limits        string   // and that one
	// Config writes the configuration of a fleet that is not simulated; the fleet
	// given is then nil.
	Config func(Listen) string
}

// Stack is a running fleet, `eppctl serve` and Envoy, all on loopback.
type Stack struct {
	Fleet    *Fleet // nil when it is not simulated
	Serve    *Process
	Envoy    *Process
	Proxy    string // URL of Envoy's listener
	Baseline string // URL of the one without the picker, "" = none
	Config   string // path of eppctl.yaml
	Listen   Listen

	opt        StackOptions
	envoyAdmin string
}

// patience is how long a process may take to get ready, or to end, on a busy machine.
const patience = time.Minute

// StartStack starts the picker and Envoy over a running fleet and waits until
// every pod's telemetry and events have arrived.
func StartStack(f *Fleet, o StackOptions) (*Stack, error) {
	addrs, err := freePorts(7)
	if err != nil {
		return nil, err
	}
	s := &Stack{Fleet: f, opt: o, Proxy: "http://" + addrs[4], envoyAdmin: addrs[5],
		Config: filepath.Join(o.Dir, "eppctl.yaml"),
		Listen: Listen{ExtProc: addrs[0], Health: addrs[1], Admin: addrs[2], Metrics: addrs[3],
			EndpointsFile: filepath.Join(o.Dir, "endpoints.json")}}
	if o.Baseline {
		s.Baseline = "http://" + addrs[6]
	}
	if o.Config == nil {
		o.Config = f.Config
	}
	config := o.Config(s.Listen)
	if o.Weights != "" {
		config += "weights: " + o.Weights + "\n"
	}
	if o.Limits != "" {
		config += "limits: " + o.Limits + "\n"
	}
	if err := os.WriteFile(s.Config, []byte(config), 0o644); err != nil {
		return nil, err
	}
	if err := s.StartServe(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.startEnvoy(addrs); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// StartServe starts the picker; again after it was killed.
func (s *Stack) StartServe() error {
	var err error
	s.Serve, err = StartProcess(filepath.Join(s.opt.Dir, "serve.log"), s.opt.Eppctl,
		append([]string{"serve", "--config", s.Config}, s.opt.Serve...)...)
	if err != nil {
		return err
	}
	return s.Serve.Until(patience, s.Synced)
}

func (s *Stack) startEnvoy(addrs []string) error {
	args := append([]string{"envoy-config", "--listen", addrs[4], "--admin", s.envoyAdmin, "--epp", s.Listen.ExtProc,
		"--epp-health", port(s.Listen.Health), "--endpoints-file", s.Listen.EndpointsFile}, s.opt.EnvoyConfig...)
	if s.opt.Baseline {
		args = append(args, "--baseline", addrs[6])
	}
	text, err := exec.Command(s.opt.Eppctl, args...).Output()
	if err != nil {
		var ee *exec.ExitError
		if errors.As(err, &ee) {
			err = fmt.Errorf("%w: %s", err, ee.Stderr)
		}
		return fmt.Errorf("eppctl envoy-config: %w", err)
	}
	path := filepath.Join(s.opt.Dir, "envoy.yaml")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return err
	}
	// One worker: the round robin of the baseline then is one sequence.
	s.Envoy, err = StartProcess(filepath.Join(s.opt.Dir, "envoy.log"), s.opt.Envoy,
		"-c", path, "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "warning")
	if err != nil {
		return err
	}
	return s.Envoy.Until(patience, s.asks)
}

// asks says why Envoy does not ask the picker yet: it is ready before its first health
// check has passed where that came too early for serve, and routes by itself until the next.
func (s *Stack) asks() error {
	if _, err := fetch("http://" + s.envoyAdmin + "/ready"); err != nil {
		return err
	}
	hosts, err := s.EnvoyHosts()
	if want := "epp::" + s.Listen.ExtProc + "::health_flags::healthy"; err == nil && !strings.Contains(hosts, want) {
		err = fmt.Errorf("the clusters of Envoy lack %s", want)
	}
	return err
}

// Close ends Envoy and the picker; the fleet stays with its owner.
func (s *Stack) Close() error {
	var errs []error
	for _, p := range []*Process{s.Envoy, s.Serve} {
		if p != nil {
			errs = append(errs, p.Stop(patience))
		}
	}
	return errors.Join(errs...)
}

// EnvoyHosts is Envoy's own list of clusters and hosts, as text.
func (s *Stack) EnvoyHosts() (string, error) {
	b, err := fetch("http://" + s.envoyAdmin + "/clusters")
	return string(b), err
}

// State is the part of the picker's /v1/state that tells whether it is in step
// with the fleet.
type State struct {
	Pods []struct {
		Name  string
		Addr  string
		Ranks []struct {
			Sync    string
			Blocks  int
			LastSeq uint64 `json:"last_seq"`
			// Expected are prompts that count as held since they were placed, and not
			// because an event says so.
			Expected int `json:"expected_prompts"`
		}
		Telemetry struct {
			State string
			AgeMs int64 `json:"age_ms"`
		}
		Load struct {
			InFlight int `json:"in_flight"`
		}
	}
	Totals struct {
		InFlight    int `json:"in_flight"`
		OpenStreams int `json:"open_streams"`
		Routed      int
	}
}

// State asks the picker.
func (s *Stack) State() (State, error) {
	var st State
	b, err := fetch("http://" + s.Listen.Admin + "/v1/state")
	if err != nil {
		return st, err
	}
	return st, json.Unmarshal(b, &st)
}

// Synced says what the picker still lacks of the fleet.
func (s *Stack) Synced() error {
	st, err := s.State()
	if err != nil {
		return err
	}
	if len(st.Pods) == 0 || s.Fleet != nil && len(st.Pods) != len(s.Fleet.Engines) {
		return fmt.Errorf("%d of %d pods are known", len(st.Pods), s.size())
	}
	for _, p := range st.Pods {
		if p.Telemetry.State != "fresh" {
			return fmt.Errorf("telemetry of pod %s is %s", p.Name, p.Telemetry.State)
		}
		for _, r := range p.Ranks {
			if r.Sync != "live" && (s.Fleet == nil || s.Fleet.ByName(p.Name).pub != nil) {
				return fmt.Errorf("events of pod %s are %s", p.Name, r.Sync)
			}
		}
	}
	return nil
}

// size is the number of simulated engines.
func (s *Stack) size() int {
	if s.Fleet == nil {
		return 1
	}
	return len(s.Fleet.Engines)
}

func fetch(url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %.200s", url, resp.StatusCode, b)
	}
	return b, err
}

// freePorts finds n distinct loopback addresses that are free now.
func freePorts(n int) ([]string, error) {
	addrs := make([]string, n)
	for i := range addrs {
		var err error
		if addrs[i], err = freeport.Take("127.0.0.1"); err != nil {
			return nil, fmt.Errorf("free port: %w", err)
		}
	}
	return addrs, nil
}
