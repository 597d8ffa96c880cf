package reason

import (
	"errors"
	"testing"
)

// A failure reads as one line of what is known of it, also from within the error
// that embeds it, and so does its cause.
func TestFailure(t *testing.T) {
	cause := errors.New("permission denied")
	for want, f := range map[string]Failure{
		"a":       {What: "a"},
		"a; b":    {What: "a", Why: "b"},
		"a; c":    {What: "a", Hint: "c"},
		"a; b; c": {What: "a", Why: "b", Hint: "c", Err: cause},
	} {
		var err error = &struct {
			Kind int
			Failure
		}{Failure: f}
		if err.Error() != want || errors.Is(err, cause) != (f.Err != nil) {
			t.Errorf("%q, want %q; its cause is %v", err, want, errors.Unwrap(err))
		}
	}
}
