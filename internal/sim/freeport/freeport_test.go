package freeport

import (
	"net"
	"strconv"
	"testing"
)

// Each address is another one, free, and no client's port; one that is taken is passed by.
func TestTake(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		at, err := Take("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		host, port, _ := net.SplitHostPort(at)
		n, _ := strconv.Atoi(port)
		if seen[at] || host != "127.0.0.1" || n < 10_000 || n > 31_999 {
			t.Fatalf("%s, given before: %v", at, seen[at])
		}
		seen[at] = true
		next := first + (taken.Load()+1)%count
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(int(next))))
		if err != nil {
			continue // somebody else's: then it is passed by too
		}
		defer l.Close()
		seen[l.Addr().String()] = true
	}
	if _, err := Take("192.0.2.1"); err == nil {
		t.Error("an address that is not ours")
	}
}
