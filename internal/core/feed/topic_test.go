package feed

import (
	"testing"
)

// TestTopicIsAHint: whose events they are is said by the socket alone. (What a
// topic says otherwise, eppctl tap --check tells.)
func TestTopicIsAHint(t *testing.T) {
	t.Run("KV-38", func(t *testing.T) {
		p, r := following(t)
		for i, topic := range []string{"kv@10.0.0.1@m", "kv@other:1@m", "", "x\x00sgl-kv-epoch=ab"} {
			p.Send(topic, uint64(i), stored(uint64(i+1)))
		}
		r.waitOps("+1 +2 +3 +4")
	})
}
