package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// listeners are the open sockets; nil = off.
type listeners struct{ extProc, health, admin, metrics net.Listener }

// listen opens all or none. Health on the address of ext_proc needs no socket of
// its own: it is served there in any case.
func listen(c Listen) (*listeners, error) {
	l := &listeners{}
	health := c.Health
	if health == c.ExtProc {
		health = ""
	}
	for _, x := range []struct {
		name, addr string
		to         *net.Listener
	}{
		{"ext_proc", c.ExtProc, &l.extProc}, {"health", health, &l.health},
		{"admin", c.Admin, &l.admin}, {"metrics", c.Metrics, &l.metrics},
	} {
		if x.addr == "" {
			continue
		}
		got, err := open(x.addr)
		if err != nil {
			l.close()
			return nil, &ListenError{Key: "listen." + x.name, Err: err}
		}
		*x.to = got
	}
	if err := private(l.admin); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// ListenError is an address that cannot be listened at.
type ListenError struct {
	Key string // of the configuration
	Err error
}

func (e *ListenError) Error() string { return e.Key + ": " + e.Err.Error() }
func (e *ListenError) Unwrap() error { return e.Err }

func open(addr string) (net.Listener, error) {
	path, unix := strings.CutPrefix(addr, "unix:")
	if !unix {
		return net.Listen("tcp", addr)
	}
	// A socket left by a process that died would keep us out; a live one
	// answers, and a file that is no socket is not ours to remove.
	if st, err := os.Lstat(path); err == nil && st.Mode()&fs.ModeSocket != 0 {
		if c, err := net.Dial("unix", path); err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("%s: another process listens there", path)
		}
		_ = os.Remove(path)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	return l, os.Chmod(path, 0o600)
}

// private refuses an admin API that others than this machine's users reach: it
// has no authentication.
func private(l net.Listener) error {
	if l == nil {
		return nil
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		return errors.New("listen.admin: " + a.String() + " is not a loopback address, and the admin API has no authentication")
	}
	return nil
}

func (l *listeners) close() {
	for _, x := range []net.Listener{l.extProc, l.health, l.admin, l.metrics} {
		if x != nil {
			_ = x.Close()
		}
	}
}

func (l *listeners) addresses() Addresses {
	text := func(x net.Listener) string {
		if x == nil {
			return ""
		}
		if x.Addr().Network() == "unix" {
			return "unix:" + x.Addr().String()
		}
		return x.Addr().String()
	}
	a := Addresses{text(l.extProc), text(l.health), text(l.admin), text(l.metrics)}
	if a.Health == "" {
		a.Health = a.ExtProc
	}
	return a
}

// messageRoom is what one message may hold beside a body: headers and metadata.
// A body a little above the limit still arrives and gets its 413.
const messageRoom = 1 << 20

// A proxy that is stopped, or behind a network that is cut, closes nothing: for TCP
// such a connection lives for a quarter of an hour, and so would the requests that
// count as in flight on it. A connection silent for silentAfter is asked, and
// closed when it does not answer within answerWithin. Envoy answers pings whatever
// it is configured to; a second is grpc-go's least.
var (
	silentAfter  = 10 * time.Second
	answerWithin = 5 * time.Second
)

// serverOptions suit a proxy that keeps one connection per worker with thousands
// of streams, each as long as a response. grpc-go's own default would refuse
// messages above 4 MiB and answer a ping more often than every 5 minutes with
// "too many pings"; Envoy's keepalive is a few seconds.
func serverOptions(requestBytes int) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(watchConns()),
		grpc.MaxRecvMsgSize(requestBytes + messageRoom),
		grpc.MaxConcurrentStreams(1 << 20),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 100 * time.Millisecond, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: silentAfter, Timeout: answerWithin}),
		grpc.InitialWindowSize(1 << 20),
		grpc.InitialConnWindowSize(16 << 20),
	}
}

// httpConns bounds the connections of the admin API and of the metrics page, each.
// Those that say nothing are closed after seconds; until then they must not take the
// descriptors that the picker's own connections need, which may be 1,024 in all.
const httpConns = 64

// bounded keeps further connections waiting in the kernel; a nil listener stays nil.
func bounded(l net.Listener) net.Listener {
	if l == nil {
		return nil
	}
	return netutil.LimitListener(l, httpConns)
}

// httpServer has a bound for everything a slow or hostile peer can stretch. A quiet
// connection is closed soon, as it has one of httpConns; a scraper connects anew. What it
// has to say itself goes to log.
func httpServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		Handler:  h, ReadHeaderTimeout: 2 * time.Second, ReadTimeout: 15 * time.Second,
		WriteTimeout: 15 * time.Second, IdleTimeout: 2 * time.Second, MaxHeaderBytes: 64 << 10,
	}
}
