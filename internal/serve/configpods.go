package serve

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/telemetry"
)

// podEntry is one element of pods as the file writes it.
type podEntry struct {
	Name        string        `yaml:"name"`
	Address     string        `yaml:"address"`
	Engine      string        `yaml:"engine"`
	Role        string        `yaml:"role"`
	Draining    bool          `yaml:"draining"`
	Model       string        `yaml:"model"`
	Adapters    []string      `yaml:"adapters"`
	Ranks       int           `yaml:"ranks"`
	Events      endpoints     `yaml:"events"`
	EventsBind  string        `yaml:"events_bind"`
	EventsPull  time.Duration `yaml:"events_pull"`
	Replay      endpoints     `yaml:"replay"`
	Metrics     string        `yaml:"metrics"`
	MaxCPULoRAs int           `yaml:"max_cpu_loras"`
	MaxContext  int           `yaml:"max_context"`
	BlockSize   int           `yaml:"block_size"`
	Device      string        `yaml:"device"`
	Rate        float64       `yaml:"prefill_tokens_per_second"`
}

// maxBlockSize is far above every engine's: hybrid models have blocks of 768 tokens,
// offload layers chunks of 256.
const maxBlockSize = 1 << 16

// endpoints is a list of ZMQ endpoints, one per data-parallel rank. The file may
// also give the first alone, or only its port on the pod's own host: the others
// follow by adding the rank to the port, as vLLM and SGLang do.
type endpoints []string

func (e *endpoints) decodeNode(d *decoder, n ast.Node, key string) {
	var list []ast.Node
	switch t := n.(type) {
	case *ast.SequenceNode:
		list = t.Values
	case ast.ScalarNode:
		list = []ast.Node{t}
	}
	for _, x := range list {
		x = d.plain(x)
		if x == nil || x.Type() != ast.StringType && x.Type() != ast.IntegerType {
			list = nil
			break
		}
		*e = append(*e, scalarText(x))
	}
	if list == nil {
		d.problem(n, key, describe(n), "tcp://HOST:PORT, a port of the pod's own host, or a list with one such entry per rank", "")
	}
}

// pods checks the entries and gives them the form of the fleet's table.
func (d *decoder) pods(entries []podEntry, models Models) []pod.Spec {
	if len(entries) > pod.MaxMembers {
		d.bad("pods", found(fmt.Sprint(len(entries), " pods")), fmt.Sprintf("at most %d", pod.MaxMembers), "")
		return nil
	}
	specs := make([]pod.Spec, 0, len(entries))
	names, addresses := map[string]int{}, map[string]int{}
	members := 0
	for i, e := range entries {
		key := "pods[" + strconv.Itoa(i) + "]"
		s := d.pod(e, key, models)
		if j, taken := names[s.Name]; taken && s.Name != "" {
			d.bad(key+".name", fmt.Sprintf("found %q, which is the name of pods[%d] too", s.Name, j), "a name of its own", "")
		}
		if j, taken := addresses[s.Address]; taken && s.Address != "" {
			d.bad(key+".address", fmt.Sprintf("found %q, which is the address of pods[%d] too", s.Address, j), "an address of its own",
				"data-parallel ranks behind one address are one pod with ranks: N")
		}
		names[s.Name], addresses[s.Address] = i, i
		members += max(s.Ranks, 1)
		specs = append(specs, s)
	}
	if members > pod.MaxMembers {
		d.bad("pods", fmt.Sprintf("found %d ranks in all", members), fmt.Sprintf("at most %d", pod.MaxMembers), "")
	}
	return specs
}

func (d *decoder) pod(e podEntry, key string, models Models) pod.Spec {
	s := pod.Spec{
		Name: e.Name, Address: e.Address, Draining: e.Draining, Model: e.Model, Adapters: e.Adapters,
		Ranks: e.Ranks, Metrics: e.Metrics, MaxCPULoRAs: e.MaxCPULoRAs, MaxContext: e.MaxContext, BlockSize: e.BlockSize,
		Device: e.Device, PrefillRate: e.Rate,
	}
	if err := checkAddress(e.Address); err != nil {
		d.bad(key+".address", err.Error(), "HOST:PORT with an IPv4 address, a bracketed IPv6 address or a DNS name", addressHint(e.Address))
	}
	if s.Name == "" {
		s.Name = e.Address
	}
	if strings.ContainsFunc(s.Name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		d.bad(key+".name", fmt.Sprintf("found %q", clip(s.Name)), "a name without blanks and control characters", "")
	}
	var ok bool
	if s.Engine, ok = pod.ParseEngine(e.Engine); !ok {
		names := []string{"auto", "vllm", "sglang", "triton", "trtllm"}
		d.bad(key+".engine", fmt.Sprintf("found %q", e.Engine), "one of "+strings.Join(names, ", "), didYouMean(e.Engine, names))
	}
	if s.Role, ok = pod.ParseRole(e.Role); !ok {
		names := []string{"both", "prefill", "decode"}
		d.bad(key+".role", fmt.Sprintf("found %q", e.Role), "one of "+strings.Join(names, ", "), didYouMean(e.Role, names))
	}
	if e.Model != "" && len(models) > 0 && !models.has(e.Model) {
		d.bad(key+".model", fmt.Sprintf("found %q, which no entry of models names", clip(e.Model)), "one of "+strings.Join(models.names(), ", "),
			didYouMean(e.Model, models.names()))
	}
	if e.Ranks < 0 || e.Ranks > pod.MaxMembers {
		d.bad(key+".ranks", found(e.Ranks), fmt.Sprintf("1 to %d", pod.MaxMembers), "")
		s.Ranks = 0
	}
	if e.MaxCPULoRAs < 0 {
		d.bad(key+".max_cpu_loras", found(e.MaxCPULoRAs), "a number of adapters, 0 = not told", "")
	}
	if e.MaxContext < 0 {
		d.bad(key+".max_context", found(e.MaxContext), "a number of tokens, 0 = not told", "")
	}
	if e.BlockSize < 0 || e.BlockSize > maxBlockSize {
		d.bad(key+".block_size", found(e.BlockSize), fmt.Sprintf("a number of tokens up to %d, 0 = not told", maxBlockSize), "")
	}
	if e.Device != "" && !telemetry.NameDevices(e.Device) {
		d.bad(key+".device", fmt.Sprintf("found %q", clip(e.Device)), "NAMESPACE/POD, GPU-UUID, GPU-UUID/INSTANCE or host:HOST as the device exporter labels them", "")
	}
	if !(e.Rate >= 0) || math.IsInf(e.Rate, 0) {
		d.bad(key+".prefill_tokens_per_second", found(e.Rate), "tokens per second, 0 = that of the model", "")
	}
	if s.Ranks == 0 {
		s.Ranks = max(len(e.Events), len(e.Replay), 1)
	}
	s.Events = d.endpoints(e.Events, key+".events", e.Address, s.Ranks)
	s.Replay = d.endpoints(e.Replay, key+".replay", e.Address, s.Ranks)
	s.Bind = d.bind(e.EventsBind, key+".events_bind")
	if s.Bind != "" && len(s.Events) > 0 {
		d.bad(key+".events_bind", "found events beside it", "one of the two", "events is dialled by eppctl, events_bind is dialled by the engine")
	}
	s.Pull = d.pull(e, key)
	if e.Metrics != "" && !httpURL(e.Metrics) {
		d.bad(key+".metrics", fmt.Sprintf("found %q", clip(e.Metrics)), "a URL such as http://10.0.0.7:8000/metrics", "")
	}
	return s
}

// pull checks how often events are fetched over HTTP.
func (d *decoder) pull(e podEntry, key string) time.Duration {
	if e.EventsPull == 0 {
		return 0
	}
	key += ".events_pull"
	d.between(key, e.EventsPull, 10*time.Millisecond, time.Minute)
	if len(e.Events) > 0 || e.EventsBind != "" || len(e.Replay) > 0 {
		d.bad(key, "found another source of events beside it", "one of them", "TensorRT-LLM either publishes its events or gives them to who asks")
	}
	if engine, _ := pod.ParseEngine(e.Engine); engine != pod.EngineUnknown && engine != pod.EngineTRTLLM {
		d.bad(key, "found engine "+e.Engine, "engine trtllm, or auto", "no other engine has this API")
	}
	return e.EventsPull
}

func httpURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// endpoints spreads what the file gives over the ranks.
func (d *decoder) endpoints(given endpoints, key, address string, ranks int) []string {
	if len(given) == 0 {
		return nil
	}
	if len(given) != 1 && len(given) != ranks {
		d.bad(key, fmt.Sprintf("found %d entries for %d ranks", len(given), ranks), "one entry per rank, or one alone", "")
		return nil
	}
	podHost, _, _ := net.SplitHostPort(address)
	out := make([]string, 0, ranks)
	for rank := range ranks {
		shift := rank
		text := given[0]
		if len(given) > 1 {
			text, shift = given[rank], 0
		}
		host, port, err := endpoint(text)
		if err == nil && port+shift > 65535 {
			err = fmt.Errorf("found port %d for rank %d, above 65535", port+shift, rank)
		}
		if err != nil {
			d.bad(key, err.Error(), "tcp://HOST:PORT or a port of the pod's own host", "")
			return nil
		}
		if host == "" || host == "*" {
			host = podHost // engines report the wildcard they bind to
		}
		out = append(out, "tcp://"+net.JoinHostPort(host, strconv.Itoa(port+shift)))
	}
	return out
}

// endpoint is pod.SplitEndpoint with an error as the configuration has them.
func endpoint(text string) (host string, port int, err error) {
	if host, port, err = pod.SplitEndpoint(text); err != nil {
		err = fmt.Errorf("found %q", clip(text))
	}
	return host, port, err
}

func (d *decoder) bind(text, key string) string {
	if text == "" {
		return ""
	}
	host, port, err := endpoint(text)
	if err == nil && host != "" && host != "*" {
		if _, ipErr := netip.ParseAddr(host); ipErr != nil {
			err = fmt.Errorf("found %q, which is not an address of this machine", clip(host))
		}
	}
	if err != nil {
		d.bad(key, err.Error(), "a local endpoint such as tcp://*:5557", "")
		return ""
	}
	if host == "" {
		host = "*"
	}
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(port))
}
