package feed

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
	"github.com/eppctl/eppctl/internal/core/view"
)

// The JSON of recordings' spec and state records. Names stand for engines, roles
// and states, so that a recording outlives the numbers of a build.

// recordedSpec is what the configuration and the engine say of a pod.
type recordedSpec struct {
	Address     string   `json:"address"`        // as configured
	Addr        string   `json:"addr,omitempty"` // resolved, "" = not yet
	Engine      string   `json:"engine"`
	Role        string   `json:"role"`
	Draining    bool     `json:"draining,omitempty"`
	Model       string   `json:"model,omitempty"`
	Adapters    []string `json:"adapters"` // null = not told
	Ranks       int      `json:"ranks"`
	Events      []string `json:"events,omitempty"`
	Bind        string   `json:"events_bind,omitempty"`
	PullMs      int64    `json:"events_pull_ms,omitempty"`
	Metrics     string   `json:"metrics,omitempty"` // without a password
	Device      string   `json:"device,omitempty"`
	MaxCPULoRAs int      `json:"max_cpu_loras,omitempty"`
	MaxContext  int      `json:"max_context,omitempty"`
	BlockSize   int      `json:"block_size,omitempty"`
	PrefillRate float64  `json:"prefill_tokens_per_second,omitempty"`
}

func encodeSpec(s *pod.Spec, addr netip.AddrPort) ([]byte, error) {
	r := recordedSpec{
		Address: s.Address, Engine: s.Engine.String(), Role: s.Role.String(), Draining: s.Draining, Model: s.Model, Adapters: s.Adapters, Ranks: s.Ranks,
		Events: s.Events, Bind: s.Bind, PullMs: s.Pull.Milliseconds(), Device: s.Device,
		MaxCPULoRAs: s.MaxCPULoRAs, MaxContext: s.MaxContext, BlockSize: s.BlockSize, PrefillRate: s.PrefillRate,
	}
	if addr.IsValid() {
		r.Addr = addr.String()
	}
	r.Metrics = pod.MaskURL(s.Metrics)
	return json.Marshal(r)
}

// decodeSpec reads the spec of the pod of this name.
func decodeSpec(name string, text []byte) (s pod.Spec, addr netip.AddrPort, err error) {
	var r recordedSpec
	if err := json.Unmarshal(text, &r); err != nil {
		return s, addr, fmt.Errorf("spec of pod %q: %w", name, err)
	}
	s = pod.Spec{
		Name: name, Address: r.Address, Draining: r.Draining, Model: r.Model, Adapters: r.Adapters, Ranks: max(r.Ranks, 1),
		Events: r.Events, Bind: r.Bind, Pull: time.Duration(r.PullMs) * time.Millisecond, Metrics: r.Metrics, Device: r.Device,
		MaxCPULoRAs: r.MaxCPULoRAs, MaxContext: r.MaxContext, BlockSize: r.BlockSize, PrefillRate: r.PrefillRate,
	}
	s.Engine, _ = pod.ParseEngine(r.Engine) // a name this build does not know is unknown
	s.Role, _ = pod.ParseRole(r.Role)
	addr, _ = netip.ParseAddrPort(r.Addr)
	return s, addr, nil
}

// recordedState is the state of a stream, its times in ns since 1970.
type recordedState struct {
	State     string      `json:"state"`
	Why       reason.Code `json:"why,omitempty"`
	Detail    string      `json:"detail,omitempty"`
	Since     int64       `json:"since"`
	Missing   uint64      `json:"missing,omitempty"`
	LastEvent int64       `json:"last_event,omitempty"`
	LastSeq   uint64      `json:"last_seq,omitempty"`
	Lost      uint64      `json:"lost,omitempty"`
	Connected bool        `json:"connected"`
}

func encodeState(s view.Sync) ([]byte, error) {
	return json.Marshal(recordedState{
		s.State.String(), s.Why, s.Detail, s.Since, s.Missing, s.LastEvent, s.LastSeq, s.Lost, s.Connected,
	})
}

// decodeState reads a state; a word that this build does not know is an error.
func decodeState(text []byte) (view.Sync, error) {
	var r recordedState
	if err := json.Unmarshal(text, &r); err != nil {
		return view.Sync{}, fmt.Errorf("state of a stream: %w", err)
	}
	for _, s := range view.SyncStates {
		if s.String() == r.State {
			return view.Sync{
				State: s, Why: r.Why, Detail: r.Detail, Since: r.Since, Missing: r.Missing,
				LastEvent: r.LastEvent, LastSeq: r.LastSeq, Lost: r.Lost, Connected: r.Connected,
			}, nil
		}
	}
	return view.Sync{}, fmt.Errorf("state of a stream: found %q, which is none", r.State)
}
