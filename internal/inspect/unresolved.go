package inspect

import (
	"errors"
	"net"

	"github.com/eppctl/eppctl/internal/core/feed"
)

// Unresolved says what kept a name from being turned into an address, and why; ok is
// false where err is about something else.
func Unresolved(err error) (met, why string, ok bool) {
	var name *net.DNSError
	if !errors.As(err, &name) {
		return "", "", false
	}
	if name.IsNotFound {
		return "no such host", "the name " + name.Name + " has no address here", true
	}
	why, _ = feed.LookupWords(err)
	return "its name cannot be looked up", why, true
}
