package serve

import (
	"time"

	"github.com/eppctl/eppctl/internal/core/feed"
)

// wall is the time of day of a stamp, for display. Stamps are by the feed's clock,
// which no step of the wall clock reaches: what was stamped before a step would
// otherwise stand beside log lines and other machines' times that are off by it.
func wall(stamp int64) time.Time {
	return shifted(stamp, time.Now(), feed.Clock())
}

// shifted moves a stamp by as much as the wall clock has stepped. Steps of less
// than a second do not show: two readings never come at the same moment, and one
// decision must not have two times.
func shifted(stamp int64, now, clock time.Time) time.Time {
	step := now.Round(0).Sub(clock.Round(0)).Truncate(time.Second) // Round strips the monotonic reading
	return time.Unix(0, stamp).Add(step).UTC()
}
