package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
)

// Fault is why a connection could not be made or ended. The words are stable:
// they label metrics.
type Fault string

// The faults.
const (
	FaultDial      Fault = "dial"      // no TCP connection
	FaultHandshake Fault = "handshake" // cut or silent before ZMTP was ready
	FaultProtocol  Fault = "protocol"  // the peer speaks something else, or breaks ZMTP
	FaultEOF       Fault = "eof"       // closed between two messages
	FaultReset     Fault = "reset"     // connection reset
	FaultTruncated Fault = "truncated" // closed inside a message
	FaultTimeout   Fault = "timeout"   // no sign of life, or stalled inside a message
	FaultOversize  Fault = "oversize"  // a frame or message above its limit
	FaultRefused   Fault = "refused"   // we turned a publisher away that may have been this member's
	FaultClosed    Fault = "closed"    // by us
)

// linkError is an error with its Fault.
type linkError struct {
	fault Fault
	err   error
}

func (e *linkError) Error() string { return fmt.Sprintf("%s: %s", e.fault, inWords(e.err)) }
func (e *linkError) Unwrap() error { return e.err }

// library takes away what zmq4 puts before every cause: its name, and that it was
// making a connection.
var library = strings.NewReplacer(
	"zmq4: ", "", "could not open a ZMTP connection: ", "", "could not initialize ZMTP connection: ", "",
	"could not exchange greetings: ", "", "could not recv greeting: ", "", "could not send greeting: ", "",
)

// inWords says an error without what is said beside it, the address, and without
// what differs from one attempt to the next, our own port: the same failure reads
// the same.
func inWords(err error) string {
	var op *net.OpError
	var call *os.SyscallError
	if words, ok := LookupWords(err); ok {
		return words
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &call):
		return call.Err.Error()
	case errors.As(err, &op):
		return inWords(op.Err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed by the other side"
	}
	return library.Replace(err.Error())
}

// faultOf returns the fault an error of this package carries.
func faultOf(err error) Fault {
	var le *linkError
	if errors.As(err, &le) {
		return le.fault
	}
	return FaultProtocol
}

// ioFault names the fault of an error the socket itself returned. inside says
// whether the stream stood inside a greeting, frame or message.
func ioFault(err error, inside bool) Fault {
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		if inside {
			return FaultTruncated
		}
		return FaultEOF
	case errors.Is(err, os.ErrDeadlineExceeded):
		return FaultTimeout
	case errors.Is(err, net.ErrClosed):
		return FaultClosed
	}
	return FaultReset
}
