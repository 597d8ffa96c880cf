// Package pod names the members of the fleet: which pods there are, under which
// address, and the dense numbers the other stages use for them.
package pod

// ID is the dense number of a pod. It is handed out by Table and used again
// after the pod is gone, so it is only meaningful beside the Set it came from.
type ID uint16

// Member is the dense number of one cache owner: a data-parallel rank of a pod.
// An engine without data parallelism is one member. The KV index is keyed by
// members, the scorecard by pods.
type Member uint16

// MaxMembers bounds the members of a fleet, and so the pods: the index keeps
// member sets as bit sets of this many bits.
const MaxMembers = 1024

// Engine is the kind of inference engine behind a pod.
type Engine uint8

// The engines eppctl has adapters for. Unknown means "not told yet".
const (
	EngineUnknown Engine = iota
	EngineVLLM
	EngineSGLang
	EngineTriton
	EngineTRTLLM
)

var engineNames = [...]string{"unknown", "vllm", "sglang", "triton", "trtllm"}

func (e Engine) String() string {
	if int(e) < len(engineNames) {
		return engineNames[e]
	}
	return "unknown"
}

// TakesRank reports whether a request can name the data-parallel rank it is for, in
// the header x-data-parallel-rank: vLLM's completions and chats, and SGLang's since
// its pull request 19832 of March 2026. Others ignore it.
func (e Engine) TakesRank() bool { return e == EngineVLLM || e == EngineSGLang }

// ParseEngine reads a name as the configuration writes it; "" and "auto" mean
// EngineUnknown.
func ParseEngine(s string) (Engine, bool) {
	if s == "" || s == "auto" {
		return EngineUnknown, true
	}
	for i, n := range engineNames[1:] {
		if n == s {
			return Engine(i + 1), true
		}
	}
	return EngineUnknown, false
}

// Role says which phases of a request a pod serves.
type Role uint8

// The roles a pod can have.
const (
	RoleBoth Role = iota
	RolePrefill
	RoleDecode
)

var roleNames = [...]string{"both", "prefill", "decode"}

func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return "both"
}

// ParseRole reads a name as the configuration writes it; "" means RoleBoth.
func ParseRole(s string) (Role, bool) {
	if s == "" {
		return RoleBoth, true
	}
	for i, n := range roleNames {
		if n == s {
			return Role(i), true
		}
	}
	return RoleBoth, false
}
