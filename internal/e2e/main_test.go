package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/eppctl/eppctl/internal/sim"
)

var eppctl, envoy string // the binaries under test

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "eppctl-e2e-")
	if err == nil {
		err = prepare(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func prepare(dir string) error {
	eppctl = filepath.Join(dir, "eppctl")
	build := exec.Command("go", append(append([]string{"build"}, buildFlags...), "-o", eppctl, "../../cmd/eppctl")...)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	// $ENVOY, then PATH, then the one `make deps` installs.
	out, err := exec.Command("../../scripts/envoy.sh").Output()
	if err != nil {
		return fmt.Errorf("these tests need an Envoy: run `make deps`, or set ENVOY=/path/to/envoy: %w", err)
	}
	envoy = string(bytes.TrimSpace(out))
	return nil
}

// stack is a running fleet behind a picker and Envoy, with a client of its own.
type stack struct {
	*sim.Stack
	t      *testing.T
	client *http.Client
	dir    string
}

type setup struct {
	fleet       sim.FleetOptions
	envoyConfig []string
	serve       []string
	weights     string // "{delay: 0}"
}

// unhurried are limits for a machine so busy that a body or an engine's answer takes
// seconds, below the 5 s after which Envoy goes on without the picker: past the usual ones
// a request is routed without its prefix, and a model keeps the client's name.
const unhurried = "{pick_deadline: 4s, render_timeout: 3s, tokenize_timeout: 3s}"

func start(t *testing.T, o setup) *stack {
	t.Helper()
	set(&o.fleet.Engines, 3)
	set(&o.fleet.Engine.Speedup, 4)
	f, err := sim.StartFleet(o.fleet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	dir := t.TempDir()
	s, err := sim.StartStack(f, sim.StackOptions{Eppctl: eppctl, Envoy: envoy, Dir: dir,
		EnvoyConfig: o.envoyConfig, Serve: o.serve, Weights: o.weights, Limits: unhurried})
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{MaxIdleConnsPerHost: 256}
	st := &stack{s, t, &http.Client{Transport: tr}, dir}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		tail := 4096
		// 0 after a drain, -1 after a kill; a race build that saw a race ends with 66, and
		// told of it when it saw it.
		if code := s.Serve.ExitCode(); code > 0 {
			t.Errorf("serve ended with code %d", code)
			tail = 1 << 20
		}
		if t.Failed() {
			t.Logf("end of serve's log:\n%s", s.Serve.Tail(tail))
			t.Logf("end of Envoy's log:\n%s", s.Envoy.Tail(2048))
		}
	})
	return st
}

// beside starts a second Envoy with an edited bootstrap and returns a stack that
// goes through it.
func (s *stack) beside(edit func(string) string) *stack {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "envoy.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	listen, admin := freeAddr(s.t), freeAddr(s.t)
	bootstrap := edit(string(text))
	if bootstrap == string(text) {
		s.t.Fatal("the edit changed nothing")
	}
	// The first two addresses are the admin page's and the listener's.
	addrs := regexp.MustCompile(`address: "127.0.0.1", port_value: \d+`).FindAllString(bootstrap, 2)
	for i, a := range []string{admin, listen} {
		host, port, _ := net.SplitHostPort(a)
		bootstrap = strings.Replace(bootstrap, addrs[i], fmt.Sprintf("address: %q, port_value: %s", host, port), 1)
	}
	path := filepath.Join(s.t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(path, []byte(bootstrap), 0o644); err != nil {
		s.t.Fatal(err)
	}
	p, err := sim.StartProcess(path+".log", envoy, "-c", path, "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "warning")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := p.Stop(patience); err != nil {
			s.t.Error(err)
		}
		if s.t.Failed() {
			s.t.Logf("end of the second Envoy's log:\n%s", p.Tail(2048))
		}
	})
	eventually(s.t, func() error {
		r, err := http.Get("http://" + admin + "/ready")
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("Envoy is not ready: %s", r.Status)
		}
		return nil
	})
	other := *s.Stack
	other.Proxy = "http://" + listen
	return &stack{&other, s.t, s.client, s.dir}
}

func set[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// answer is a response read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    error
	usage  sim.Usage
}

func (a answer) pod() string { return a.header.Get(sim.ServedBy) }

// call sends one request through Envoy. extra headers come in pairs.
func (s *stack) call(ctx context.Context, method, path string, body []byte, extra ...string) answer {
	req, err := http.NewRequestWithContext(ctx, method, s.Proxy+path, bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(extra); i += 2 {
		req.Header.Set(extra[i], extra[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	a.body, a.err = io.ReadAll(resp.Body)
	var r struct{ Usage sim.Usage }
	if json.Unmarshal(a.body, &r) == nil {
		a.usage = r.Usage
	}
	return a
}

// must fails the test unless the request was answered with 200.
func (s *stack) must(a answer) answer {
	s.t.Helper()
	if a.err != nil || a.status != http.StatusOK {
		s.t.Fatalf("status %d, error %v: %.500s", a.status, a.err, a.body)
	}
	return a
}

// completion is the body of a token-id completion.
func completion(prompt []uint32, output int) []byte {
	b, err := json.Marshal(map[string]any{"model": "sim", "prompt": prompt, "max_tokens": output})
	if err != nil {
		panic(err)
	}
	return b
}

// prompt returns n token ids that share no block with another seed's.
func prompt(seed, n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(1000 + (seed*7919+i*31)%90_000)
	}
	out[0] = uint32(100_000 + seed)
	return out
}

// patience is how long a state may take to come: processes of several tests share the
// processors, under the race detector too.
const patience = 2 * time.Minute

// eventually waits for a condition, which says what is still wrong.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %v", patience, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// quiet waits until the picker counts no request in flight.
func (s *stack) quiet() {
	s.t.Helper()
	eventually(s.t, func() error {
		st, err := s.State()
		if err == nil && st.Totals.InFlight != 0 {
			err = fmt.Errorf("%d requests in flight", st.Totals.InFlight)
		}
		return err
	})
}

// card is the part of an explanation the tests read.
type card struct {
	Pods []struct {
		Name  string
		Match struct {
			Tokens int `json:"cached_tokens"`
			Depth  int
		}
	}
	Pick struct {
		Outcome string
		Pod     string
		Addr    string
	}
}

// pickOf asks the picker's ring how it decided about a request.
func (s *stack) pickOf(id string) card {
	s.t.Helper()
	var c card
	if err := json.Unmarshal(s.admin(http.MethodGet, "/v1/explain/"+id, nil), &c); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// explain asks the picker how it would decide about a completion now.
func (s *stack) explain(body []byte, id string) []byte {
	s.t.Helper()
	return s.admin(http.MethodPost, "/v1/explain?path=/v1/completions", body, "x-request-id", id)
}

// depth is nil when the picker counts so many tokens of the prompt on a pod.
func (s *stack) depth(prompt []uint32, pod string, tokens int) error {
	var c card
	if err := json.Unmarshal(s.explain(completion(prompt, 1), "depth"), &c); err != nil {
		return err
	}
	for _, p := range c.Pods {
		if p.Name == pod {
			// The last token is computed in any case.
			if size := s.Fleet.ByName(pod).Options().BlockSize; p.Match.Depth*size != tokens {
				return fmt.Errorf("pod %s holds %d blocks, want %d tokens", pod, p.Match.Depth, tokens)
			}
			return nil
		}
	}
	return fmt.Errorf("no pod %s in the explanation", pod)
}

func (s *stack) admin(method, path string, body []byte, extra ...string) []byte {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.Listen.Admin+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i+1 < len(extra); i += 2 {
		req.Header.Set(extra[i], extra[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s %s: status %d, error %v: %.500s", method, path, resp.StatusCode, err, b)
	}
	return b
}

func fetchPage(t *testing.T, url string) []byte {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v", url, resp.StatusCode, err)
	}
	return b
}
