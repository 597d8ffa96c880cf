package pick

import "time"

// RetryAfter is when a request that was shed may be sent again: when the first of the
// pods that only their breaker leaves out will have answered enough to take one more,
// at the pace of its queue. It is at least a second, since no header says less and an
// overdue queue says nothing, and at most the longest cooldown of a pod that fails: a
// client that has waited so long had better ask.
func (c *Card) RetryAfter() time.Duration {
	b := &c.basis.policy.Breaker
	wait := b.CooldownMax
	for i := range c.Rows {
		if r := &c.Rows[i]; r.Verdict == BreakerOpen {
			over := float64(r.Depth-b.Depth+1) / float64(r.Depth)
			wait = min(wait, r.Slow*r.Queue*over)
		}
	}
	return max(time.Second, duration(wait))
}
