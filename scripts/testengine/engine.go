package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/tokenizer"
	"github.com/eppctl/eppctl/internal/modelsource"
	"github.com/eppctl/eppctl/internal/sim"
)

// engine is one inference engine on loopback. start may be called again after
// kill, and gives an engine at the same address.
type engine interface {
	start(ctx context.Context) error
	kill()
	addr() string
	entry() string // its element of the configuration's pods
	kind() pod.Engine
	about() string // for the report
	log() string   // the end of what it wrote
}

// What every engine is started with. The pool holds 3072 tokens, so that eight
// long prompts are more than fit.
const (
	modelName = "tiny"
	adapter   = "sql"
	maxLength = 2048
	poolSize  = 3072 // tokens
)

// find tells which engine an environment holds.
func find(env, models, dir string) (engine, error) {
	if env == "sim" {
		encoder, err := encoder(models)
		return &simulated{options: sim.EngineOptions{
			Name: "engine", Model: modelName, Adapters: []string{adapter}, MaxAdapters: 2, Encoder: encoder,
			// vLLM keeps one block for itself.
			BlockSize: 32, Blocks: poolSize/32 + 1, MaxModelLen: maxLength, Speedup: 20,
		}}, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	p := &program{env: env, models: models, logFile: filepath.Join(dir, "engine.log"), api: ports[0], events: ports[1], replay: ports[2]}
	switch {
	case executable(filepath.Join(env, "bin", "vllm")):
		p.engine = pod.EngineVLLM
	case len(glob(env, "lib/python3*/site-packages/sglang")) > 0:
		p.engine = pod.EngineSGLang
	default:
		return nil, fmt.Errorf("%s: neither bin/vllm nor the package sglang is there", env)
	}
	return p, nil
}

// encoder makes the simulator's ids from the files that the engines have.
func encoder(models string) (tokenizer.Provider, error) {
	place, err := (&modelsource.Settings{}).Find(context.Background(), filepath.Join(models, "tiny-llama"), "")
	if err != nil {
		return nil, err
	}
	return place.Load(modelsource.Options{})
}

func executable(path string) bool {
	s, err := os.Stat(path)
	return err == nil && !s.IsDir() && s.Mode()&0o111 != 0
}

func glob(dir, pattern string) []string {
	list, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is ours
	return list
}

// program is an engine of a Python environment, as a process of its own.
type program struct {
	env, models, logFile string
	engine               pod.Engine
	api, events, replay  int
	process              *sim.Process
}

// startTime is how long a real engine may take on two busy cores: importing its
// libraries alone took over two minutes there.
const startTime = 10 * time.Minute

func (p *program) start(ctx context.Context) error {
	exe, args := p.vllm()
	if p.engine == pod.EngineSGLang {
		exe, args = p.sglang()
	}
	var err error
	// nice: serve and Envoy share the machine with it.
	if p.process, err = sim.StartProcess(p.logFile, "env", append([]string{
		"HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "OMP_NUM_THREADS=1", "DO_NOT_TRACK=1",
		"VLLM_CPU_KVCACHE_SPACE=1", "VLLM_CPU_OMP_THREADS_BIND=nobind", "VLLM_NO_USAGE_STATS=1", "VLLM_SERVER_DEV_MODE=1",
		"SGLANG_USE_CPU_ENGINE=1", "nice", "-n", "5", exe,
	}, args...)...); err != nil {
		return err
	}
	return p.process.Until(startTime, func() error {
		if ctx.Err() != nil {
			return nil // whoever goes on sees it
		}
		return get("http://" + p.addr() + "/health")
	})
}

// vllm: block size 32 is the smallest that its CPU backend takes; the development
// mode has /reset_prefix_cache.
func (p *program) vllm() (exe string, args []string) {
	return filepath.Join(p.env, "bin", "vllm"), []string{
		"serve", filepath.Join(p.models, "tiny-llama"), "--served-model-name", modelName, "--load-format", "dummy", "--enforce-eager",
		"--dtype", "bfloat16", "--max-model-len", strconv.Itoa(maxLength), "--block-size", "32",
		"--num-gpu-blocks-override", strconv.Itoa(poolSize/32 + 1), "--max-num-seqs", "8",
		"--enable-lora", "--max-loras", "2", "--lora-modules", adapter + "=" + filepath.Join(p.models, "lora-sql"),
		"--host", "127.0.0.1", "--port", strconv.Itoa(p.api), "--enable-prefix-caching", "--enable-prompt-tokens-details",
		"--kv-events-config", p.publisher(`"enable_kv_cache_events":true,`),
	}
}

func (p *program) sglang() (exe string, args []string) {
	return filepath.Join(p.env, "bin", "python"), []string{
		"-m", "sglang.launch_server", "--model-path", filepath.Join(p.models, "tiny-llama"), "--served-model-name", modelName,
		"--load-format", "dummy", "--device", "cpu", "--attention-backend", "torch_native", "--sampling-backend", "pytorch",
		"--disable-overlap-schedule", "--page-size", "16", "--max-total-tokens", strconv.Itoa(poolSize), "--context-length", strconv.Itoa(maxLength),
		"--host", "127.0.0.1", "--port", strconv.Itoa(p.api), "--enable-metrics", "--enable-cache-report",
		"--kv-events-config", p.publisher(""),
	}
}

func (p *program) publisher(more string) string {
	return fmt.Sprintf(`{%s"publisher":"zmq","endpoint":"tcp://*:%d","replay_endpoint":"tcp://*:%d","topic":"kv@%s@%s"}`,
		more, p.events, p.replay, p.addr(), modelName)
}

func (p *program) kill() {
	if p.process != nil {
		p.process.Kill()
		p.process = nil
	}
}

func (p *program) addr() string     { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.api)) }
func (p *program) entry() string    { return entry(p.addr()) }
func (p *program) kind() pod.Engine { return p.engine }
func (p *program) about() string    { return fmt.Sprintf("%s of %s", p.engine, p.env) }

func (p *program) log() string {
	if p.process == nil {
		return ""
	}
	return string(p.process.Tail(4096))
}

// simulated is the project's own simulator: it proves the driver, and nothing
// about real engines.
type simulated struct {
	options sim.EngineOptions
	running *sim.Engine
}

func (s *simulated) start(context.Context) (err error) {
	if s.running, err = sim.Start(s.options); err == nil {
		s.options = s.running.Options()
	}
	return err
}

func (s *simulated) kill() {
	if s.running != nil {
		s.running.Kill()
		s.running = nil
	}
}

func (s *simulated) addr() string     { return s.options.Addr }
func (s *simulated) entry() string    { return entry(s.addr()) }
func (s *simulated) kind() pod.Engine { return pod.EngineVLLM }
func (s *simulated) about() string    { return "the simulator (no real engine)" }
func (s *simulated) log() string      { return "" }

// entry names the address alone: the rest is found out by asking.
func entry(addr string) string { return fmt.Sprintf("{name: engine, address: %q}", addr) }

// get wants status 200.
func get(url string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}

// freePorts finds ports of loopback that are free now.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		a, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			return nil, errors.New("a TCP listener without a TCP address")
		}
		ports = append(ports, a.Port)
	}
	return ports, nil
}
