package split

import (
	"context"
	"time"
)

// untilEnd is the longest that a search may take from now on.
func untilEnd(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(time.Until(deadline), matchLimit)
	}
	return matchLimit
}
