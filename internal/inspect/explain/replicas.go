package explain

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/eppctl/eppctl/internal/core/pick"
)

// Replicas is one request as two replicas of serve decide it, or one of them at two
// times: who picks whom, and whatever is not the same.
type Replicas struct {
	APIVersion  string       `json:"apiVersion"` // "eppctl/v1"
	Kind        string       `json:"kind"`       // "Replicas"
	RequestID   string       `json:"request_id"` // the same for both: it breaks ties
	SamePick    bool         `json:"same_pick"`
	A           Replica      `json:"a"`
	B           Replica      `json:"b"`
	Differences []Difference `json:"differences"`
}

// Replica is one side.
type Replica struct {
	Addr  string             `json:"addr"` // of serve; with --diff, the file of the saved answer, and the source of the new one
	At    string             `json:"at"`
	Pods  int                `json:"pods"`
	Pick  pick.ExplainedPick `json:"pick"`
	Score *float64           `json:"score"` // seconds, of the pod picked
}

// Difference is a value that the two do not have in common; null = a side has none.
type Difference struct {
	Pod   *string `json:"pod"`   // null = of the request, or of the weights
	Field string  `json:"field"` // as the Explanation calls it; a term by its name, its inputs below it
	A     any     `json:"a"`
	B     any     `json:"b"`
}

// ageSkew is how far ages may lie apart without being a difference: each replica
// scrapes at times of its own, by default four times in that.
const ageSkew = 1000.0 // ms

// ofNature are the fields that are another replica's own, whatever it knows.
var ofNature = []string{"at", "source", "request_id", "epoch", "read_us", "decide_us", "flip", "what_if", "pick", "pods", "prompt", "tokenizer.parity"}

// newReplicas compares two answers about one request.
func newReplicas(addrA, addrB string, a, b *pick.Explanation) *Replicas {
	r := &Replicas{
		APIVersion: "eppctl/v1", Kind: "Replicas", RequestID: a.RequestID,
		SamePick: deref(a.Pick.Addr) == deref(b.Pick.Addr) && a.Pick.Outcome == b.Pick.Outcome,
		A:        replica(addrA, a), B: replica(addrB, b), Differences: []Difference{},
	}
	r.differ(nil, leaves(a, ofNature), leaves(b, ofNature))
	names := map[string]bool{}
	for _, x := range []*pick.Explanation{a, b} {
		for i := range x.Pods {
			names[x.Pods[i].Name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		p, q := podOf(a.Pods, name), podOf(b.Pods, name)
		if p == nil || q == nil {
			r.Differences = append(r.Differences, Difference{Pod: &name, Field: "known", A: p != nil, B: q != nil})
			continue
		}
		r.differ(&name, podLeaves(p), podLeaves(q))
	}
	return r
}

// outcome is what one side made of the request, by name, and by address too where the
// name alone says the same of both.
func (r *Replicas) outcome(side *Replica) string {
	text := outcomeText(&side.Pick)
	if text == outcomeText(&r.A.Pick) && text == outcomeText(&r.B.Pick) && side.Pick.Addr != nil {
		text += " at " + *side.Pick.Addr
	}
	return text
}

func replica(addr string, x *pick.Explanation) Replica {
	r := Replica{Addr: addr, At: x.At, Pods: len(x.Pods), Pick: x.Pick}
	if x.Pick.Pod != nil {
		if p := podOf(x.Pods, *x.Pick.Pod); p != nil {
			r.Score = p.Total
		}
	}
	return r
}

// differ adds what is not the same of two sets of leaves.
func (r *Replicas) differ(pod *string, a, b map[string]any) {
	both := maps.Clone(a)
	maps.Copy(both, b)
	for _, field := range slices.Sorted(maps.Keys(both)) {
		x, y := a[field], b[field]
		if x == y || strings.Contains(field, "age_ms") && near(x, y) {
			continue
		}
		r.Differences = append(r.Differences, Difference{Pod: pod, Field: field, A: x, B: y})
	}
}

// near reports whether two ages are as close as those of two replicas can be.
func near(a, b any) bool {
	x, ok := a.(float64)
	y, also := b.(float64)
	return ok && also && math.Abs(x-y) <= ageSkew
}

// podLeaves are a pod's values. A term's seconds stand under its name, and its inputs
// below it.
func podLeaves(p *pick.ExplainedPod) map[string]any {
	m := leaves(p, []string{"terms", "name", "tie_weight"})
	for _, t := range p.Terms {
		m["terms."+t.Name] = t.Seconds
		for k, v := range leaves(t.Inputs, nil) {
			m["terms."+t.Name+"."+k] = v
		}
	}
	return m
}

// leaves flattens a value as its JSON form has it, without the fields named.
func leaves(v any, without []string) map[string]any {
	m := map[string]any{}
	b, err := json.Marshal(v)
	if err != nil {
		return m // what was read as JSON can be written
	}
	var tree any
	if json.Unmarshal(b, &tree) != nil {
		return m
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if slices.Contains(without, path) {
			return
		}
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				walk(strings.TrimPrefix(path+"."+k, "."), x)
			}
		case []any:
			text, _ := json.Marshal(v) // lists are short here, and compared whole
			m[path] = string(text)
		default:
			m[path] = v
		}
	}
	walk("", tree)
	return m
}
