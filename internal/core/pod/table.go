package pod

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Spec is what the configuration, completed by what the engine tells of itself,
// says about one pod. What every decision reads of it comes first.
type Spec struct {
	// Model is the base model the pod serves and Adapters the LoRA names it can
	// serve; an empty Model means "any", a nil Adapters means "not told".
	Model  string
	Engine Engine
	Role   Role
	// Draining pods finish what they have and are not picked.
	Draining bool
	// MaxContext is the longest prompt the pod takes, in tokens; 0 = not told.
	MaxContext int
	// PrefillRate is this pod's peak prefill rate in tokens per second where its
	// hardware differs from its model's reference; 0 = as the reference.
	PrefillRate float64
	Adapters    []string
	Name        string // unique; defaults to Address
	Address     string // host:port as configured: IPv4, [IPv6] or a DNS name
	Ranks       int    // data-parallel ranks, at least 1
	// Events and Replay are endpoints (tcp://host:port) per rank, Bind the
	// local endpoint at which the engine's publisher dials us. Empty = none.
	Events []string
	Replay []string
	Bind   string
	// Pull is how often events are fetched from the engine over HTTP
	// (TensorRT-LLM); 0 = not so.
	Pull    time.Duration
	Metrics string // URL of the metrics page
	// Device names the pod's accelerators as the node's device exporter labels
	// them (telemetry.GPU.Names), separated by commas; "" = not watched.
	Device string
	// MaxCPULoRAs is how many adapters the pod keeps loaded where that is more than
	// it computes with at once (vLLM's flag of this name); 0 = not told.
	MaxCPULoRAs int
	// BlockSize is the tokens per KV block that the operator believes the engine
	// has, 0 = not told. It counts until the events tell, and is held against them.
	BlockSize int
	// Release is the engine's version as it tells it ("0.32.0"), "" = not told. It is not
	// configured.
	Release string
}

// HasEvents reports whether a source of KV events is known.
func (s *Spec) HasEvents() bool { return len(s.Events) > 0 || s.Bind != "" || s.Pull > 0 }

// Pod is one pod at one instant. It is immutable: a change makes a new Pod. What
// every decision reads of it comes first, in two cache lines.
type Pod struct {
	ID ID
	// Epoch grows each time a pod is added, so that counters of an earlier pod
	// of the same name or ID are never mixed with this one's.
	Epoch   uint64
	Target  string   // canonical "ip:port" ("[ip6]:port"), "" while unresolved
	Members []Member // one per rank, in rank order
	Spec    Spec
	Addr    netip.AddrPort // resolved; invalid while a DNS name has no address
}

// Set is an immutable snapshot of the fleet.
type Set struct {
	Epoch uint64 // grows with every change
	Pods  []*Pod // in order of ID; no nil entries
	byID  []*Pod // indexed by ID, nil where free
	owner []*Pod // indexed by Member
	place []int  // of a member's pod in Pods, indexed by Member; -1 = nobody's
}

// ByID returns the pod with this ID, or nil.
func (s *Set) ByID(id ID) *Pod {
	if int(id) < len(s.byID) {
		return s.byID[id]
	}
	return nil
}

// Owner returns the pod and rank a member belongs to, or nil.
func (s *Set) Owner(m Member) (p *Pod, rank int) {
	if int(m) >= len(s.owner) || s.owner[m] == nil {
		return nil, 0
	}
	p = s.owner[m]
	for i, x := range p.Members {
		if x == m {
			return p, i
		}
	}
	return nil, 0
}

// Place returns where in Pods the pod stands that a member belongs to, or -1.
func (s *Set) Place(m Member) int {
	if int(m) < len(s.place) {
		return s.place[m]
	}
	return -1
}

// ByTarget returns the pod with this canonical address, or nil. It is a linear
// search: meant for the response path and for display, not for scoring.
func (s *Set) ByTarget(addr netip.AddrPort) *Pod {
	for _, p := range s.Pods {
		if p.Addr == addr {
			return p
		}
	}
	return nil
}

// ByName returns the pod of this name, or nil.
func (s *Set) ByName(name string) *Pod {
	for _, p := range s.Pods {
		if p.Spec.Name == name {
			return p
		}
	}
	return nil
}

// ErrFull is returned by Add when the fleet has no free ID or member left.
var ErrFull = errors.New("fleet is full")

// Table is the registry of pods. Snapshot may be called from any goroutine and
// takes no lock; the other methods serialise among themselves.
type Table struct {
	mu      sync.Mutex
	cur     atomic.Pointer[Set]
	epoch   uint64
	ids     [MaxMembers]bool // in use, retired ones included
	members [MaxMembers]bool
}

// NewTable returns an empty table.
func NewTable() *Table {
	t := &Table{}
	t.cur.Store(&Set{})
	return t
}

// Snapshot returns the fleet as it is now.
func (t *Table) Snapshot() *Set { return t.cur.Load() }

// Add registers a pod and hands out its ID and members. The caller resolves
// addr; an invalid one is allowed and keeps the pod from being picked.
func (t *Table) Add(spec Spec, addr netip.AddrPort) (*Pod, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cur.Load().ByName(spec.Name) != nil {
		return nil, fmt.Errorf("pod %q: name is taken", spec.Name)
	}
	id, ok := free(&t.ids)
	if !ok {
		return nil, fmt.Errorf("pod %q: %w: %d pods", spec.Name, ErrFull, MaxMembers)
	}
	p := &Pod{ID: ID(id), Spec: spec}
	setAddr(p, addr)
	for range max(spec.Ranks, 1) {
		m, ok := free(&t.members)
		if !ok {
			for _, m := range p.Members {
				t.members[m] = false
			}
			return nil, fmt.Errorf("pod %q: %w: %d members", spec.Name, ErrFull, MaxMembers)
		}
		t.members[m] = true
		p.Members = append(p.Members, Member(m))
	}
	t.ids[id] = true
	t.epoch++
	p.Epoch = t.epoch
	t.publish(func(pods []*Pod) []*Pod { return append(pods, p) })
	return p, nil
}

// Update replaces the pod with this ID by what change makes of a copy of it.
// ID, Members and Epoch stay; change must not touch them.
func (t *Table) Update(id ID, change func(*Pod)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.publish(func(pods []*Pod) []*Pod {
		for i, p := range pods {
			if p.ID == id {
				n := *p
				change(&n)
				setAddr(&n, n.Addr)
				pods[i] = &n
			}
		}
		return pods
	})
}

// Remove takes the pod out of the fleet. Its ID and members stay reserved until
// Free, so that nobody inherits blocks or counters that are still being purged.
func (t *Table) Remove(id ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.publish(func(pods []*Pod) []*Pod {
		out := pods[:0]
		for _, p := range pods {
			if p.ID != id {
				out = append(out, p)
			}
		}
		return out
	})
}

// Free gives back the ID and members of a removed pod.
func (t *Table) Free(p *Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ids[p.ID] = false
	for _, m := range p.Members {
		t.members[m] = false
	}
}

// publish builds the next Set from a copy of the present list. mu is held.
func (t *Table) publish(edit func([]*Pod) []*Pod) {
	old := t.cur.Load()
	pods := edit(append([]*Pod(nil), old.Pods...))
	s := &Set{Epoch: old.Epoch + 1, Pods: pods}
	for _, p := range pods {
		for int(p.ID) >= len(s.byID) {
			s.byID = append(s.byID, nil)
		}
		s.byID[p.ID] = p
		for _, m := range p.Members {
			for int(m) >= len(s.owner) {
				s.owner = append(s.owner, nil)
			}
			s.owner[m] = p
		}
	}
	s.Pods = s.Pods[:0]
	for _, p := range s.byID {
		if p != nil {
			s.Pods = append(s.Pods, p)
		}
	}
	s.place = make([]int, len(s.owner))
	for i := range s.place {
		s.place[i] = -1
	}
	for i, p := range s.Pods {
		for _, m := range p.Members {
			s.place[m] = i
		}
	}
	t.cur.Store(s)
}

func setAddr(p *Pod, addr netip.AddrPort) {
	p.Addr, p.Target = addr, ""
	if addr.IsValid() {
		p.Addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
		p.Target = p.Addr.String()
	}
}

func free(used *[MaxMembers]bool) (int, bool) {
	for i, u := range used {
		if !u {
			return i, true
		}
	}
	return 0, false
}
