// Package inspect holds what the commands that look at a running fleet share:
// the client of serve's admin API and the errors they end with. It never imports
// serve; the types on the wire are those of the core.
package inspect

import (
	"errors"
	"strings"

	"github.com/eppctl/eppctl/internal/core/reason"
)

// Kind is what an error means for the exit code. The codes themselves stand in
// cmd/eppctl, in one table.
type Kind uint8

// The kinds.
const (
	Failed      Kind = iota // failed while running
	Usage                   // the command line or a file cannot be used
	Negative                // the tool worked, the answer is no
	Unreachable             // serve or an engine cannot be reached in time
	Incomplete              // only a part could be had
	Interrupted             // by the user
)

// Error is a failure with what it means for scripts.
type Error struct {
	Kind Kind
	Code string // stable word: E_CONNECT, E_NO_ELIGIBLE_POD …
	reason.Failure
}

// OfFlag blames another flag than --addr for an address.
func OfFlag(err error, flag string) error {
	var e *Error
	if errors.As(err, &e) {
		e.What = strings.ReplaceAll(e.What, "--addr", flag)
		e.Hint = strings.ReplaceAll(e.Hint, "--addr", flag)
	}
	return err
}
