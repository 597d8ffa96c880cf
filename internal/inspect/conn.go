package inspect

import (
	"net"
	"sync"
)

// askFirst is a connection on which nothing is read before something was written.
// Of what speaks first, such as a gRPC server, net/http would now make an answer
// and now a line in the log.
type askFirst struct {
	net.Conn
	release sync.Once
	asked   chan struct{} // closed by the first Write, or by Close
}

func newAskFirst(c net.Conn) net.Conn { return &askFirst{Conn: c, asked: make(chan struct{})} }

func (c *askFirst) Read(b []byte) (int, error) {
	<-c.asked
	return c.Conn.Read(b)
}

func (c *askFirst) Write(b []byte) (int, error) {
	defer c.release.Do(func() { close(c.asked) })
	return c.Conn.Write(b)
}

func (c *askFirst) Close() error {
	defer c.release.Do(func() { close(c.asked) })
	return c.Conn.Close()
}
