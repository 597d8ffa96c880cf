package feed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/eppctl/eppctl/internal/core/pod"
	"github.com/eppctl/eppctl/internal/core/reason"
)

// What a probe does with event and replay ports.

// events shakes hands with every event port.
func (r *probe) events(spec pod.Spec) {
	if len(spec.Events) == 0 {
		detail := "no event endpoint is known: routed to by load alone"
		if spec.Bind != "" {
			detail = "the engine dials " + spec.Bind
		} else if spec.Pull > 0 {
			// Asking would take them from whoever reads them.
			detail = fmt.Sprintf("read from %s every %v; not asked: who asks takes them", pullURL(&spec), spec.Pull)
		}
		r.facts = append(r.facts, Fact{Pod: r.name, What: "events", OK: spec.HasEvents(), Detail: detail})
	}
	for rank, e := range spec.Events {
		r.port("events", rank, e, zmq4.Sub)
	}
}

// replay asks every replay port for nothing.
func (r *probe) replay(spec pod.Spec) {
	for rank, e := range spec.Replay {
		r.port("replay", rank, e, zmq4.Dealer)
	}
}

// port notes what came of one port, and when nothing good, why.
func (r *probe) port(what string, rank int, endpoint string, kind zmq4.SocketType) {
	detail, err := r.Port(r.ctx, endpoint, string(kind))
	if err == nil {
		r.fact(what, nil, fmt.Sprintf("rank %d %s: %s", rank, endpoint, detail))
		return
	}
	f := Finding{Severity: SeverityWarning, Pod: r.name, Field: what, Value: endpoint}
	code, hint := r.blame(endpoint, kind, err)
	f.Code, f.Hint = string(code), hint
	r.findings = append(r.findings, f)
	r.facts = append(r.facts, Fact{
		Pod: r.name, What: what, Code: f.Code,
		Detail: fmt.Sprintf("rank %d %s: %s", rank, endpoint, printable(err.Error(), 200)),
	})
}

// blame says why a port is of no use.
func (r *probe) blame(endpoint string, kind zmq4.SocketType, err error) (code reason.Code, hint string) {
	dead := reason.Disconnected
	if kind == zmq4.Dealer {
		dead = reason.ReplayDead
	}
	switch {
	case errors.Is(err, errNoReplay):
		return dead, "it takes a request and sends nothing: not an engine's replay port, or its publisher hangs"
	case faultOf(err) == FaultDial:
		return dead, undialled(err)
	}
	if who := r.answering(endpoint, kind); who != "" {
		return reason.WrongPort, who
	}
	return reason.WrongPort, "what listens there does not speak as a publisher of KV events does"
}

// undialled says what to do when there is no TCP connection, as far as the way in
// which it failed tells.
func undialled(err error) string {
	var dns *net.DNSError
	var own net.Error
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "the name " + printable(dns.Name, 100) + " does not resolve: correct it, or ask from where its DNS is known"
	case errors.As(err, &dns):
		return "the name " + printable(dns.Name, 100) + " could not be looked up: the name server fails or does not answer"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: start the engine with this endpoint, or correct it"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route leads there: correct the address, or ask from another network"
	case errors.As(err, &own) && own.Timeout():
		return "no answer: a firewall or network policy drops the packets, or no machine has the address"
	}
	return "no connection: start the engine with this endpoint, or correct it"
}

// answering finds out what listens at an endpoint instead of the socket that kind
// is meant for; "" = no telling.
func (r *probe) answering(endpoint string, kind zmq4.SocketType) string {
	if r.web(endpoint) {
		return "an HTTP server listens there, as at the engine's API port: take the port of --kv-events-config"
	}
	other, who := zmq4.Dealer, "a ROUTER socket listens there, as at the replay port: events come from the PUB socket"
	if kind == zmq4.Dealer {
		other, who = zmq4.Sub, "a PUB socket listens there, as at the event port: replays come from the ROUTER socket"
	}
	if _, err := r.Port(r.ctx, endpoint, string(other)); err == nil || errors.Is(err, errNoReplay) {
		return who
	}
	return ""
}

// web reports whether anything speaks HTTP there.
func (r *probe) web(endpoint string) bool {
	addr, err := tcpAddress(endpoint)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(r.ctx, answerTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/", nil)
	if err != nil {
		return false
	}
	resp, err := send(r.Client, req)
	if err != nil {
		return false
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 1<<10)
	resp.Body.Close()
	return true
}

// errNoReplay is a ROUTER that leaves a request for a replay without an answer.
var errNoReplay = errors.New("no answer to a request")

// knock opens a ZMTP connection and closes it again. A replay port is asked for
// what no engine has published yet: it answers with the end marker alone.
func knock(ctx context.Context, endpoint, kind string) (string, error) {
	l, err := dialer{}.dial(ctx, endpoint, zmq4.SocketType(kind))
	if err != nil {
		return "", err
	}
	major, minor := l.Peer()
	defer l.Close()
	if zmq4.SocketType(kind) == zmq4.Dealer {
		if err := answersReplay(l); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("ZMTP %d.%d", major, minor), nil
}

// beyond is a sequence number that no engine reaches, and that one which reads it
// as signed reads alike.
const beyond = math.MaxInt64

// answersReplay asks for the end of the history. The engine answers between its
// batches, and may be inside a long step.
func answersReplay(l *link) error {
	if err := l.send(nil, binary.BigEndian.AppendUint64(nil, beyond)); err != nil {
		return err
	}
	l.silence(3 * time.Second)
	for {
		switch frames, err := l.Recv(); {
		case err != nil && faultOf(err) == FaultTimeout:
			return errNoReplay
		case err != nil:
			return err
		case frames != nil:
			return nil
		}
	}
}
