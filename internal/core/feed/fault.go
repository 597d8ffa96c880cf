package feed

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
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
	FaultClosed    Fault = "closed"    // by us
)

// linkError is an error with its Fault.
type linkError struct {
	fault Fault
	err   error
}

func (e *linkError) Error() string { return fmt.Sprintf("%s: %v", e.fault, e.err) }
func (e *linkError) Unwrap() error { return e.err }

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
