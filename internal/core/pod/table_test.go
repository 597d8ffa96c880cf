package pod_test

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/eppctl/eppctl/internal/core/pod"
)

func addr(t *testing.T, s string) netip.AddrPort {
	t.Helper()
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func add(t *testing.T, tab *pod.Table, name, at string, ranks int) *pod.Pod {
	t.Helper()
	p, err := tab.Add(pod.Spec{Name: name, Ranks: ranks}, addr(t, at))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTableHandsOutDenseNumbers(t *testing.T) {
	tab := pod.NewTable()
	a := add(t, tab, "a", "10.0.0.1:8000", 1)
	b := add(t, tab, "b", "10.0.0.2:8000", 2)
	if a.ID != 0 || b.ID != 1 || len(b.Members) != 2 || b.Members[0] != 1 || b.Members[1] != 2 {
		t.Fatalf("a %+v, b %+v", a, b)
	}
	s := tab.Snapshot()
	if p, rank := s.Owner(2); p != b || rank != 1 {
		t.Errorf("Owner(2) = %v rank %d, want b rank 1", p, rank)
	}
	for m, want := range []int{0, 1, 1, -1} {
		if got := s.Place(pod.Member(m)); got != want {
			t.Errorf("member %d stands in place %d, want %d", m, got, want)
		}
	}
	if p, _ := s.Owner(3); p != nil {
		t.Errorf("Owner(3) = %v, want none", p)
	}
	if s.ByID(1) != b || s.ByID(9) != nil || s.ByName("a") != a || s.ByTarget(b.Addr) != b {
		t.Error("look-ups by ID, name and address disagree")
	}
}

func TestTableKeepsNumbersUntilFree(t *testing.T) {
	tab := pod.NewTable()
	a := add(t, tab, "a", "10.0.0.1:8000", 1)
	tab.Remove(a.ID)
	if b := add(t, tab, "b", "10.0.0.2:8000", 1); b.ID == a.ID || b.Members[0] == a.Members[0] {
		t.Fatalf("b took the numbers of a pod that is still being purged: %+v", b)
	}
	tab.Free(a)
	c := add(t, tab, "c", "10.0.0.3:8000", 1)
	if c.ID != a.ID || c.Members[0] != a.Members[0] {
		t.Errorf("freed numbers are not used again: %+v", c)
	}
	if c.Epoch <= a.Epoch {
		t.Errorf("epoch %d of the new pod is not above %d of the old", c.Epoch, a.Epoch)
	}
}

func TestTableSnapshotIsFrozen(t *testing.T) {
	tab := pod.NewTable()
	a := add(t, tab, "a", "10.0.0.1:8000", 1)
	before := tab.Snapshot()
	tab.Update(a.ID, func(p *pod.Pod) { p.Spec.Draining = true })
	tab.Remove(a.ID)
	if len(before.Pods) != 1 || before.Pods[0].Spec.Draining {
		t.Error("a snapshot changed after it was taken")
	}
	if len(tab.Snapshot().Pods) != 0 {
		t.Error("the pod is still there after Remove")
	}
}

func TestTableCanonicalAddress(t *testing.T) {
	tab := pod.NewTable()
	for i, c := range []struct{ in, want string }{
		{"10.0.0.1:8000", "10.0.0.1:8000"},
		{"[2001:db8::1]:8000", "[2001:db8::1]:8000"},
		{"[::ffff:10.0.0.9]:8000", "10.0.0.9:8000"},
	} {
		if p := add(t, tab, fmt.Sprint(i), c.in, 1); p.Target != c.want {
			t.Errorf("%s: target %q, want %q", c.in, p.Target, c.want)
		}
	}
	p, err := tab.Add(pod.Spec{Name: "unresolved"}, netip.AddrPort{})
	if err != nil || p.Target != "" {
		t.Errorf("unresolved pod: target %q, err %v", p.Target, err)
	}
}

func TestTableRefuses(t *testing.T) {
	tab := pod.NewTable()
	add(t, tab, "a", "10.0.0.1:8000", 1)
	if _, err := tab.Add(pod.Spec{Name: "a"}, addr(t, "10.0.0.2:8000")); err == nil {
		t.Error("a second pod of one name was accepted")
	}
	if _, err := tab.Add(pod.Spec{Name: "wide", Ranks: pod.MaxMembers}, addr(t, "10.0.0.3:8000")); !errors.Is(err, pod.ErrFull) {
		t.Errorf("err = %v, want ErrFull", err)
	}
	// A refused pod must not keep members.
	if p := add(t, tab, "b", "10.0.0.2:8000", pod.MaxMembers-1); len(p.Members) != pod.MaxMembers-1 {
		t.Errorf("members %d", len(p.Members))
	}
}

// One writer adds and removes, readers walk snapshots: -race is the check.
func TestTableConcurrentReaders(t *testing.T) {
	tab := pod.NewTable()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, p := range tab.Snapshot().Pods {
					if q, _ := tab.Snapshot().Owner(p.Members[0]); q != nil && q.ID != p.ID && q.Epoch == p.Epoch {
						t.Error("one epoch under two IDs")
						return
					}
				}
			}
		})
	}
	for i := range 500 {
		p := add(t, tab, fmt.Sprint(i), "10.0.0.1:8000", 2)
		tab.Remove(p.ID)
		tab.Free(p)
	}
	close(stop)
	wg.Wait()
}
