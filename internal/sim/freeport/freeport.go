// Package freeport finds addresses for processes that have to be told where to listen.
package freeport

import (
	"errors"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
)

// The ports given lie below 32768, where Linux begins to take the ports of clients from:
// one of those is soon the near end of somebody's connection, or of one to itself, when
// nobody listens at it and somebody dials on.
const first, count = 10_000, 22_000

// taken counts the ports tried. Processes side by side, which have numbers side by side,
// begin far from each other.
var taken atomic.Uint32

func init() { taken.Store(uint32(os.Getpid()) * 4099) }

// Take returns an address of ip that nobody listens at now, and none twice.
func Take(ip string) (string, error) {
	for range count {
		port := first + taken.Add(1)%count
		l, err := net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(int(port))))
		switch {
		case err == nil:
			return l.Addr().String(), l.Close()
		case !errors.Is(err, syscall.EADDRINUSE):
			return "", err
		}
	}
	return "", errors.New("no port is free from 10000 to 31999")
}
