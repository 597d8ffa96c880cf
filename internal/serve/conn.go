package serve

import (
	"context"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
)

// watched is a proxy's connection that remembers being closed. grpc-go ends the
// streams of a lost connection with the same code as a stream that the proxy
// reset (Canceled), and the two mean the opposite: the proxy is gone, and its
// requests with it, or it goes on with a request and has no more to say about it.
// grpc-go closes the connection before it ends the streams, so a stream that ends
// can tell. The connection doubles as the stream's AuthInfo, the one thing of a
// connection's that a handler can reach.
type watched struct {
	net.Conn
	credentials.CommonAuthInfo
	closed atomic.Bool
}

func (c *watched) AuthType() string { return "none" }

func (c *watched) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// watching are credentials that secure nothing and watch each connection.
type watching struct {
	credentials.TransportCredentials
}

func watchConns() credentials.TransportCredentials { return watching{insecure.NewCredentials()} }

func (watching) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	w := &watched{Conn: c, CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}
	return w, w, nil
}

func (w watching) Clone() credentials.TransportCredentials { return w }

// connLost reports that the connection of a stream's context is closed.
func connLost(ctx context.Context) bool {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return false
	}
	c, ok := p.AuthInfo.(*watched)
	return ok && c.closed.Load()
}
